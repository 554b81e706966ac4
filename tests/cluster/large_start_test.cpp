// Starts over much data in snapshots, with an empty log: how long the first transaction waits. A
// long run loads 100 million records and checks the time. A short run loads few records and does
// not check the time. ATOLL_START_RECORDS sets another number of records.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ops/cli/running_cluster.h"
#include "shared/client/session_client.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ordered_bytes.h"

namespace atolldb::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kTable = "rows";
constexpr size_t kRecordBytes = 100;
constexpr uint64_t kFew = 300'000;
constexpr uint64_t kMany = 100'000'000;
constexpr std::chrono::milliseconds kLimit{2'000};

/// Returns the number of records to load.
uint64_t record_count() {
  const char* given = std::getenv("ATOLL_START_RECORDS");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : rounds(kFew, kMany);
}

std::array<std::byte, kRecordBytes> record_of(uint64_t key) {
  std::array<std::byte, kRecordBytes> record;
  for (size_t i = 0; i < record.size(); ++i) {
    record[i] = static_cast<std::byte>((key * 0x9e3779b97f4a7c15 >> (i % 57)) + i);
  }
  return record;
}

class LargeStartTest : public testing::Test {
 protected:
  /// Returns the config of the test's cluster, with default settings of memory and durability.
  Config default_sizes() const {
    Config config = folder_.config("start");
    config.memory = Config{}.memory;
    config.durability = Config{}.durability;
    return config;
  }
  void begin(LauncherProcess& launcher) { ASSERT_EQ(launcher.next_line(), "running"); }
  void end(LauncherProcess& launcher) {
    kill(launcher.pid(), SIGTERM);
    ASSERT_EQ(launcher.wait(), 0);
  }
  std::unique_ptr<SessionClient> connect(uint32_t node) {
    auto session = SessionClient::connect(config_.cluster.run_dir, node);
    EXPECT_TRUE(session) << session.error().message;
    return session ? *std::move(session) : nullptr;
  }
  /// Loads an equal part of the keys in each session, in ascending order. A session waits until its
  /// commit is durable, so many sessions share each epoch.
  void load(uint64_t count) {
    ASSERT_TRUE(
        cli::RunningCluster(config_).create_storage(kTable, StorageType::mastertree, kRecordBytes));
    constexpr uint64_t kSessions = 32;
    std::vector<std::jthread> threads;
    for (uint64_t i = 0; i < kSessions; ++i) {
      threads.emplace_back([this, i, count] {
        load_range(i % 2, count * i / kSessions, count * (i + 1) / kSessions);
      });
    }
  }
  void load_range(uint32_t node, uint64_t first, uint64_t end) {
    constexpr uint64_t kAtOnce = 200;
    const auto session = connect(node);
    if (session == nullptr) return;
    while (first < end) {
      KvRequest request;
      const uint64_t last = std::min(first + kAtOnce, end);
      for (uint64_t key = first; key < last; ++key) {
        request.put(kTable, ordered_bytes(key), record_of(key));
      }
      const SessionReply reply = session->call("kv.txn", request.bytes());
      if (reply.status == Status::volatile_pool_exhausted) continue;  // until a snapshot helps
      ASSERT_EQ(reply.status, Status::ok) << reply.message;
      first = last;
    }
  }
  void expect_record(SessionClient& session, uint64_t key) {
    KvRequest request;
    request.get(kTable, ordered_bytes(key));
    const SessionReply reply = session.call("kv.txn", request.bytes());
    ASSERT_EQ(reply.status, Status::ok) << reply.message;
    const auto results = read_kv_reply(reply.output, request.bytes());
    ASSERT_TRUE(results);
    EXPECT_TRUE(std::ranges::equal((*results)[0].value, record_of(key))) << key;
  }
  /// Loads the records, and makes a snapshot of all of them. Ends the cluster.
  void make_data(uint64_t count) {
    LauncherProcess launcher(config_);
    ASSERT_NO_FATAL_FAILURE(begin(launcher));
    load(count);
    ASSERT_FALSE(HasFailure());
    const auto taken = cli::RunningCluster(config_).coordinator(
        ControlOperation::snapshot_take, Json::object(), std::chrono::minutes(30));
    ASSERT_TRUE(taken) << taken.error().message;
    ASSERT_NO_FATAL_FAILURE(end(launcher));
  }
  /// Returns a member of the snapshot cache of node 0 in the status.
  uint64_t cache_of_node0(const char* member) {
    const auto status = cli::RunningCluster(config_).coordinator(ControlOperation::status, {},
                                                                 Cluster::kDefaultTimeout);
    EXPECT_TRUE(status) << status.error().message;
    return status ? status->at("nodes").at(0).at("snapshot_cache").at(member).get<uint64_t>() : 0;
  }
  /// Reads these keys on node 0, and returns how often its cache missed.
  uint64_t misses_of_reads(const std::vector<uint64_t>& keys) {
    const auto session = connect(0);
    if (session == nullptr) return 0;
    const uint64_t before = cache_of_node0("misses");
    const auto began = Clock::now();
    for (const uint64_t key : keys) expect_record(*session, key);
    const std::chrono::duration<double, std::milli> took = Clock::now() - began;
    // The heartbeat publishes the gauges of the cache.
    const uint64_t beats = heartbeats();
    EXPECT_TRUE(eventually([&] { return heartbeats() > beats + 1; }));
    const uint64_t misses = cache_of_node0("misses") - before;
    std::printf("%zu reads in %.0f ms with %lu misses\n", keys.size(), took.count(), misses);
    return misses;
  }
  uint64_t heartbeats() {
    const auto status = cli::RunningCluster(config_).coordinator(ControlOperation::status, {},
                                                                 Cluster::kDefaultTimeout);
    return status ? status->at("nodes").at(0).at("heartbeats").get<uint64_t>() : 0;
  }
  void print_steps() const {
    for (const char* role : {"launcher", "coordinator", "node0", "node1"}) {
      std::istringstream lines(read_text(config_.cluster.log_dir + "/" + role + ".log"));
      for (std::string line; std::getline(lines, line);) {
        if (line.contains(": step ") || line.contains(" step ") || line.contains("after")) {
          std::printf("%s\n", line.c_str());
        }
      }
    }
  }

  TestFolder folder_;
  Config config_ = default_sizes();
};

TEST_F(LargeStartTest, ServesItsFirstTransactionSoonWhateverTheSizeOfTheData) {
  const uint64_t count = record_count();
  ASSERT_GT(count, 1'000u);
  {
    config_.memory.volatile_pool = uint64_t{1} << 30;  // for the load only
    config_.memory.volatile_pool = count > kFew ? config_.memory.volatile_pool : uint64_t{64} << 20;
    ASSERT_NO_FATAL_FAILURE(make_data(count));
  }
  config_ = default_sizes();
  const auto began = Clock::now();
  LauncherProcess launcher(config_);
  ASSERT_NO_FATAL_FAILURE(begin(launcher));
  const auto session = connect(0);
  ASSERT_NE(session, nullptr);
  KvRequest request;
  request.put(kTable, ordered_bytes(count / 3), record_of(count / 3));
  const SessionReply reply = session->call("kv.txn", request.bytes());
  ASSERT_EQ(reply.status, Status::ok) << reply.message;
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  std::printf("%lu records: the first commit %ld ms after the begin of the start\n", count,
              took.count());
  for (const uint64_t key : {uint64_t{0}, count / 3, count / 2, count - 1}) {
    expect_record(*session, key);
  }
  print_steps();
  if (count > kFew) {
    EXPECT_LT(took, kLimit);
  }
  const auto status = cli::RunningCluster(config_).coordinator(ControlOperation::status, {},
                                                               Cluster::kDefaultTimeout);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->at("recovery"), nullptr) << "the log was empty";
  ASSERT_NO_FATAL_FAILURE(end(launcher));
}

TEST_F(LargeStartTest, TheCacheHasThePagesThatWereReadBeforeTheStart) {
  constexpr uint64_t kRecords = 100'000;
  ASSERT_NO_FATAL_FAILURE(make_data(kRecords));
  std::mt19937_64 random(seed());
  std::vector<uint64_t> keys(2'000);
  for (uint64_t& key : keys) key = random() % kRecords;
  {
    LauncherProcess launcher(config_);
    ASSERT_NO_FATAL_FAILURE(begin(launcher));
    EXPECT_GT(misses_of_reads(keys), 0u);
    ASSERT_NO_FATAL_FAILURE(end(launcher));
  }
  {
    LauncherProcess launcher(config_);
    ASSERT_NO_FATAL_FAILURE(begin(launcher));
    ASSERT_TRUE(eventually([&] {
      const uint64_t to_warm = cache_of_node0("to_warm_bytes");
      return to_warm != 0 && cache_of_node0("warmed_bytes") == to_warm;
    })) << cache_of_node0("warmed_bytes")
        << " of " << cache_of_node0("to_warm_bytes");
    EXPECT_EQ(misses_of_reads(keys), 0u);
    ASSERT_NO_FATAL_FAILURE(end(launcher));
  }
  config_.snapshot.warm_cache = false;
  LauncherProcess launcher(config_);
  ASSERT_NO_FATAL_FAILURE(begin(launcher));
  EXPECT_GT(misses_of_reads(keys), 0u);
  EXPECT_EQ(cache_of_node0("to_warm_bytes"), 0u);
  ASSERT_NO_FATAL_FAILURE(end(launcher));
}

}  // namespace
}  // namespace atolldb::test
