// Data larger than the volatile pools, up to ten times. Snapshots take over the pages that do not
// fit in memory, while clients load, read and write all data. Clients compare each value with their
// last write, also when processes are killed meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ops/cli/running_cluster.h"
#include "shared/client/session_client.h"
#include "shared/config/machine.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ordered_bytes.h"

namespace atolldb::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kLargeNodes = 2;
constexpr uint64_t kPoolBytes = uint64_t{4} << 20;  // bytes per node
constexpr size_t kLargeValueBytes = 512;
/// With so many keys, the values alone are ten times as large as the pools.
constexpr uint64_t kTenTimes = 10 * kLargeNodes * kPoolBytes / kLargeValueBytes;  // number of keys
constexpr uint64_t kTwice = 2 * kLargeNodes * kPoolBytes / kLargeValueBytes;
constexpr const char* kLarge = "large";

using Value = std::array<std::byte, kLargeValueBytes>;

/// Every byte depends on key and counter.
Value value_of(uint64_t key, uint64_t counter) {
  std::mt19937_64 random(key * 1'000'003 + counter);
  Value value;
  for (size_t at = 0; at < value.size(); at += 8) {
    const uint64_t word = random();
    std::memcpy(value.data() + at, &word, sizeof word);
  }
  return value;
}

/// A client that owns every n-th key, so that it knows the value of each.
class Client {
 public:
  /// `node`: node of its session. `number`: number of the client.
  Client(const std::string& run_dir, uint32_t node, uint32_t number, uint64_t keys, uint64_t seed)
      : run_dir_(run_dir),
        node_(node),
        number_(number),
        random_(seed),
        counters_(keys / kLargeNodes, 0) {}

  void connect() {
    auto session = SessionClient::connect(run_dir_, node_);
    ASSERT_TRUE(session) << session.error().message;
    session_ = *std::move(session);
    is_lost_ = false;
  }

  void fill() {
    constexpr uint64_t kAtOnce = 64;
    for (uint64_t first = 0; first < counters_.size() && is_well(); first += kAtOnce) {
      KvRequest request;
      for (uint64_t i = first; i < std::min(first + kAtOnce, counters_.size()); ++i) {
        request.put(kLarge, ordered_bytes(key(i)), value_of(key(i), 0));
      }
      transact(request);
    }
  }

  /// Reads and writes random keys until `end`, or until the cluster has ended.
  void work(Clock::time_point end, bool may_be_lost = false) {
    may_be_lost_ = may_be_lost;
    while (Clock::now() < end && is_well()) work_once();
    may_be_lost_ = false;
  }

  /// Writes many random keys at once, so that pages are taken faster than a snapshot job frees
  /// some. Ends as `work` does.
  void rewrite(Clock::time_point end) {
    constexpr size_t kAtOnce = 64;
    may_be_lost_ = true;
    while (Clock::now() < end && is_well()) {
      std::set<uint64_t> indexes;
      while (indexes.size() < kAtOnce) indexes.insert(random_() % counters_.size());
      KvRequest request;
      for (const uint64_t index : indexes) {
        request.put(kLarge, ordered_bytes(key(index)), value_of(key(index), counters_[index] + 1));
      }
      transact(request);
      if (is_lost_) unknown_.insert(indexes.begin(), indexes.end());
      for (const uint64_t index : indexes) counters_[index] += is_lost_ ? 0 : 1;
    }
    may_be_lost_ = false;
  }

  /// Reads every key once. This also resolves the writes that were in flight when the cluster
  /// ended.
  void verify() {
    constexpr uint64_t kAtOnce = 32;
    for (uint64_t first = 0; first < counters_.size() && is_well(); first += kAtOnce) {
      KvRequest request;
      std::vector<uint64_t> indexes;
      for (uint64_t i = first; i < std::min(first + kAtOnce, counters_.size()); ++i) {
        indexes.push_back(i);
        request.get(kLarge, ordered_bytes(key(i)));
      }
      expect_values(transact(request), request, indexes);
    }
    unknown_.clear();
  }

  uint64_t transactions() const { return transactions_; }
  /// Number of requests refused because the pool stayed full after a wait of the node.
  uint64_t refusals() const { return refusals_; }

 private:
  static constexpr size_t kKeysAtOnce = 4;

  uint64_t key(uint64_t index) const { return index * kLargeNodes + number_; }
  bool is_well() const { return session_ != nullptr && !is_lost_ && !testing::Test::HasFailure(); }

  void work_once() {
    std::array<uint64_t, kKeysAtOnce> indexes;
    for (uint64_t& index : indexes) index = random_() % counters_.size();
    const bool writes = random_() % 2 == 0;
    KvRequest request;
    for (const uint64_t index : indexes) request.get(kLarge, ordered_bytes(key(index)));
    for (size_t i = 0; writes && i < kKeysAtOnce; ++i) {
      // If a key occurs twice, both writes have the same value.
      request.put(kLarge, ordered_bytes(key(indexes[i])),
                  value_of(key(indexes[i]), counters_[indexes[i]] + 1));
    }
    const SessionReply reply = transact(request);
    if (is_lost_) {
      if (writes) unknown_.insert(indexes.begin(), indexes.end());
      return;
    }
    expect_values(reply, request, indexes);
    const std::set<uint64_t> written(indexes.begin(), indexes.end());
    for (const uint64_t index : written) counters_[index] += writes ? 1 : 0;
    ++transactions_;
  }

  /// Repeats the request until it succeeds. Adds a failure if a lack of pages does not end soon.
  SessionReply transact(const KvRequest& request) {
    const auto patience = Clock::now() + std::chrono::seconds(30);
    SessionReply reply;
    do {
      reply = session_->call("kv.txn", request.bytes());
      refusals_ += reply.status == Status::volatile_pool_exhausted ? 1 : 0;
    } while (reply.status == Status::volatile_pool_exhausted && Clock::now() < patience);
    is_lost_ = may_be_lost_ && reply.status != Status::ok && !is_wrong(reply.status);
    EXPECT_TRUE(is_lost_ || reply.status == Status::ok)
        << to_string(reply.status) << " " << reply.message;
    return reply;
  }
  /// Returns true for a status that is wrong even if the cluster is killed.
  static bool is_wrong(Status status) {
    return status != Status::outcome_unknown && status != Status::unavailable &&
           status != Status::cluster_failed;
  }

  template <typename Indexes>
  void expect_values(const SessionReply& reply, const KvRequest& request, const Indexes& indexes) {
    if (reply.status != Status::ok) return;
    const auto results = read_kv_reply(reply.output, request.bytes());
    ASSERT_TRUE(results);
    for (size_t i = 0; i < indexes.size(); ++i) {
      const KvResultView& got = (*results)[i];
      uint64_t& counter = counters_[indexes[i]];
      ASSERT_EQ(got.status, Status::ok) << "key " << key(indexes[i]);
      const bool may_be_next = unknown_.contains(indexes[i]);
      if (may_be_next && std::ranges::equal(got.value, value_of(key(indexes[i]), counter + 1))) {
        ++counter;
      }
      ASSERT_TRUE(std::ranges::equal(got.value, value_of(key(indexes[i]), counter)))
          << "key " << key(indexes[i]) << ", written " << counter << " times";
    }
  }

  std::string run_dir_;
  uint32_t node_;
  uint32_t number_;
  std::mt19937_64 random_;
  std::unique_ptr<SessionClient> session_;
  std::vector<uint64_t> counters_;  // the oracle: number of writes per key
  std::set<uint64_t> unknown_;      // keys with one more write whose outcome is unknown
  bool may_be_lost_ = false;
  bool is_lost_ = false;  // the session has ended with the cluster
  uint64_t transactions_ = 0;
  uint64_t refusals_ = 0;
};

class LargerThanMemoryTest : public testing::Test {
 protected:
  LargerThanMemoryTest() {
    config_.memory.volatile_pool = kPoolBytes;
    config_.memory.snapshot_cache = kPoolBytes;
    config_.gleaner.pool_low_water = 50;
    config_.gleaner.pool_high_water = 90;
  }

  Json status() const {
    const auto status = cli::RunningCluster(config_).coordinator(ControlOperation::status, {},
                                                                 Cluster::kDefaultTimeout);
    EXPECT_TRUE(status) << status.error().message;
    return status ? *status : Json::object();
  }
  /// Expects that the only storage has all pages of the snapshot caches.
  void expect_counts_by_storage() const {
    // The nodes publish the counts with their heartbeats.
    EXPECT_TRUE(eventually([&] {
      const Json now = status();
      const Json& storage = now.at("storages").at(0).at("snapshot_cache");
      uint64_t evictions = 0;
      uint64_t used_bytes = 0;
      for (const Json& node : now.at("nodes")) {
        evictions += node.at("snapshot_cache").at("evictions").get<uint64_t>();
        used_bytes += node.at("snapshot_cache").at("used_bytes").get<uint64_t>();
      }
      return evictions != 0 && used_bytes != 0 && storage.at("evictions") == evictions &&
             storage.at("used_bytes") == used_bytes &&
             storage.at("pages_read") == evictions + used_bytes / 4096;
    })) << status().dump(1);
  }
  /// Returns the private memory of all nodes, in bytes.
  uint64_t anonymous_bytes() const {
    uint64_t sum = 0;
    for (uint32_t node = 0; node < kLargeNodes; ++node) {
      for (const pid_t pid : processes_of(config_.cluster.name, "node" + std::to_string(node))) {
        std::istringstream lines(read_text("/proc/" + std::to_string(pid) + "/status"));
        for (std::string line; std::getline(lines, line);) {
          if (line.starts_with("RssAnon:")) sum += std::stoull(line.substr(8)) << 10;
        }
      }
    }
    return sum;
  }
  void on_all(const std::function<void(Client&)>& body) {
    std::vector<std::jthread> threads;
    for (const auto& client : clients_) threads.emplace_back([&] { body(*client); });
  }
  void connect_all() {
    for (const auto& client : clients_) ASSERT_NO_FATAL_FAILURE(client->connect());
  }
  /// REQUIRES: the cluster runs.
  void fill(uint64_t keys) {
    const auto created = cli::RunningCluster(config_).create_storage(
        kLarge, StorageType::mastertree, static_cast<uint32_t>(kLargeValueBytes));
    ASSERT_TRUE(created) << created.error().message;
    const auto nodes = static_cast<uint32_t>(config_.nodes.size());
    for (uint32_t number = 0; number < kLargeNodes; ++number) {
      clients_.push_back(std::make_unique<Client>(config_.cluster.run_dir, number % nodes, number,
                                                  keys, seed() + number));
    }
    ASSERT_NO_FATAL_FAILURE(connect_all());
    on_all([](Client& client) { client.fill(); });
    ASSERT_FALSE(HasFailure()) << status().dump(1);
  }
  struct Kills {
    uint64_t rounds = 1;
    uint64_t longest_delay_us = 1;
    std::function<void()> await{};  // called before the delay; null: nothing
  };
  /// In each round all clients do `work`, until a random process is killed at a random instant.
  /// Afterwards the clients check everything that was promised to them.
  void kill_processes(const Kills& kills,
                      const std::function<void(Client&, Clock::time_point never)>& work) {
    std::mt19937_64 random(seed());
    for (uint64_t round = 0; round <= kills.rounds; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      LauncherProcess launcher(config_);
      ASSERT_EQ(launcher.next_line(), "running");
      if (round == 0) {
        ASSERT_NO_FATAL_FAILURE(fill(kTwice));
      }
      ASSERT_NO_FATAL_FAILURE(connect_all());
      on_all([](Client& client) { client.verify(); });
      ASSERT_FALSE(HasFailure()) << status().dump(1);
      if (round == kills.rounds) break;
      std::jthread killer([&] {
        if (kills.await) kills.await();
        const std::chrono::microseconds delay(random() % kills.longest_delay_us);
        // this sleep does not synchronise: the instant is the test's input
        std::this_thread::sleep_for(delay);
        const std::vector<pid_t> processes = processes_of(config_.cluster.name);
        kill(processes.at(random() % processes.size()), SIGKILL);
      });
      const auto never = Clock::now() + std::chrono::hours(1);
      on_all([&](Client& client) { work(client, never); });
      killer.join();
      launcher.wait();
      ASSERT_FALSE(HasFailure());
    }
  }

  TestFolder folder_;
  Config config_ = folder_.config("large", kLargeNodes);
  std::vector<std::unique_ptr<Client>> clients_;
};

TEST_F(LargerThanMemoryTest, AllOfItIsReadAndWrittenWhileMemoryStaysAsItIs) {
  LauncherProcess launcher(config_);
  ASSERT_EQ(launcher.next_line(), "running");
  ASSERT_NO_FATAL_FAILURE(fill(kTenTimes));
  const uint64_t loaded_bytes = anonymous_bytes();
  const auto end = Clock::now() + std::chrono::seconds(rounds(5, 600));
  on_all([&](Client& client) { client.work(end); });
  const uint64_t worked_bytes = anonymous_bytes();
  on_all([](Client& client) { client.verify(); });
  const Json last = status();
  ASSERT_FALSE(HasFailure()) << last.dump(1);
  EXPECT_GT(last.at("snapshots").at("newest"), 3);
  EXPECT_FALSE(last.at("snapshots").at("install").contains("error")) << last.dump(1);
  ASSERT_GT(loaded_bytes, 0u);
  EXPECT_LT(worked_bytes, loaded_bytes + (uint64_t{32} << 20));
  expect_counts_by_storage();
  uint64_t transactions = 0;
  for (const auto& client : clients_) {
    transactions += client->transactions();
    EXPECT_EQ(client->refusals(), 0u);
  }
  EXPECT_GT(transactions, 0u);
  uint64_t stalls = 0;
  for (const Json& node : last.at("nodes")) stalls += node.at("page_stalls").get<uint64_t>();
  std::printf("%lu transactions of 4 keys out of %lu, %lu waits for pages; %s\n", transactions,
              kTenTimes, stalls, last.at("snapshots").dump().c_str());
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

/// R84. Kills a random process at a random instant after the job of a snapshot has begun during the
/// install of the one before.
TEST_F(LargerThanMemoryTest, WhatWasPromisedIsThereThoughProcessesDieWhileTwoSnapshotsOverlap) {
  // With processors of its own, a job overlaps an install although the machine is busy.
  const std::vector<int32_t> cpus = Machine::detect().cpus;
  if (cpus.size() < 2) GTEST_SKIP() << "a job needs a processor of its own";
  config_.nodes.resize(1);
  config_.nodes[0].cpus = {cpus[0]};
  config_.nodes[0].gleaner_cpus = {cpus[1]};
  const auto await_overlap = [&] {
    EXPECT_TRUE(eventually([&] {
      return status().at("snapshots").at("overlapped").get<uint64_t>() > 0;
    })) << "no job overlaps the install before";
  };
  kill_processes({.rounds = rounds(4, 60), .longest_delay_us = 500'000, .await = await_overlap},
                 [](Client& client, Clock::time_point never) { client.rewrite(never); });
}

TEST_F(LargerThanMemoryTest, WhatWasPromisedIsThereThoughProcessesDieWhilePagesAreDropped) {
  kill_processes({.rounds = rounds(3, 60), .longest_delay_us = 2'000'000},
                 [](Client& client, Clock::time_point never) { client.work(never, true); });
}

}  // namespace
}  // namespace atolldb::test
