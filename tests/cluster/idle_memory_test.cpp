// An idle cluster gets its memory back after churn in small layers. Inserts, erases and aborts
// leave layers without living records, and layers with one. Snapshots evict the pages that the
// newest snapshot holds. Their installers reclaim the rest (R70, R71), although nothing is
// committed any more.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "ops/cli/running_cluster.h"
#include "shared/client/session_client.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/launcher_process.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kLayers = "layers";
/// Snapshots begin below this percentage of free pages. The limit can be high, because all data are
/// in snapshots.
constexpr uint64_t kLowWater = 85;

class IdleMemoryTest : public testing::Test {
 protected:
  IdleMemoryTest() {
    config_.memory.volatile_pool = uint64_t{8} << 20;
    config_.gleaner.pool_low_water = kLowWater;
    config_.gleaner.pool_high_water = 95;
  }

  Json status() const {
    const auto status = cli::RunningCluster(config_).coordinator(ControlOperation::status, {},
                                                                 Cluster::kDefaultTimeout);
    EXPECT_TRUE(status) << status.error().message;
    return status ? *status : Json::object();
  }
  /// Returns the percentage of free pages of the only node.
  uint64_t free_percent() const {
    const Json pool = status().at("nodes").at(0).at("pool");
    return pool.at("free").get<uint64_t>() * 100 / pool.at("total").get<uint64_t>();
  }

  static std::string key_of(uint64_t number) {
    char text[32];
    std::snprintf(text, sizeof text, "%08lu-%c-key", number / kKeysPerLayer,
                  static_cast<char>('a' + number % kKeysPerLayer));
    return text;  // the first eight bytes are the slice of the layer
  }
  /// Repeats the request while the node has no free page. Pages must become free soon.
  static SessionReply transact(SessionClient& session, const KvRequest& request) {
    const auto end = Clock::now() + kPatience;
    SessionReply reply;
    do {
      reply = session.call("kv.txn", request.bytes());
    } while (reply.status == Status::volatile_pool_exhausted && Clock::now() < end);
    return reply;
  }

  /// Commits and aborts changes of random keys.
  void churn(SessionClient& session, std::mt19937_64& random, uint64_t transactions) {
    for (uint64_t i = 0; i < transactions; ++i) {
      KvRequest request;
      std::set<uint64_t> changed;
      while (changed.size() < kKeysAtOnce) changed.insert(random() % kKeys);
      for (const uint64_t number : changed) {
        const std::string key = key_of(number);
        if (content_.contains(number)) {
          request.erase(kLayers, kv_bytes(key));
        } else {
          request.put(kLayers, kv_bytes(key), kv_bytes("value"));
        }
      }
      const bool aborts = i % 8 == 0;
      // The comparison fails, so the transaction is rolled back.
      if (aborts) request.compare(kLayers, kv_bytes("nowhere"), kv_bytes("else"));
      const SessionReply reply = transact(session, request);
      ASSERT_EQ(reply.status, aborts ? Status::user_abort : Status::ok)
          << to_string(reply.status) << " " << reply.message;
      for (const uint64_t number : changed) {
        if (!aborts && content_.erase(number) == 0) content_.insert(number);
      }
    }
  }
  /// Commits all keys.
  void fill(SessionClient& session) {
    for (uint64_t first = 0; first < kKeys; first += kKeysAtOnce) {
      KvRequest request;
      for (uint64_t i = first; i < first + kKeysAtOnce; ++i) {
        request.put(kLayers, kv_bytes(key_of(i)), kv_bytes("value"));
        content_.insert(i);
      }
      const SessionReply reply = transact(session, request);
      ASSERT_EQ(reply.status, Status::ok) << to_string(reply.status) << " " << reply.message;
    }
  }
  /// Puts keys from key `first` on and rolls back, until the pool is low. Nothing is committed.
  void abort_until_low(SessionClient& session, uint64_t first) {
    for (; free_percent() >= kLowWater; first += kKeysAtOnce) {
      ASSERT_LT(first, 2 * kKeys) << "the aborted transactions use no memory";
      KvRequest request;
      for (uint64_t i = first; i < first + kKeysAtOnce; ++i) {
        request.put(kLayers, kv_bytes(key_of(i)), kv_bytes("other"));
      }
      request.compare(kLayers, kv_bytes("nowhere"), kv_bytes("else"));
      const SessionReply reply = transact(session, request);
      ASSERT_EQ(reply.status, Status::user_abort) << to_string(reply.status) << reply.message;
    }
  }
  /// Waits until snapshots of the idle cluster have freed the pages.
  void expect_pages_back() {
    const auto begun = Clock::now();
    while (free_percent() < kLowWater && Clock::now() - begun < kPatience) {
      // this sleep does not synchronise: it spares the processes that the test waits for
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_GE(free_percent(), kLowWater) << status().dump(1);
  }
  void create_storage() {
    const auto created =
        cli::RunningCluster(config_).create_storage(kLayers, StorageType::mastertree, 8);
    ASSERT_TRUE(created) << created.error().message;
  }

  /// Checks that the storage has the keys of the content, and no others.
  void expect_content(SessionClient& session) {
    for (uint64_t first = 0; first < kKeys; first += kKeysAtOnce) {
      KvRequest request;
      for (uint64_t i = first; i < first + kKeysAtOnce; ++i) {
        request.get(kLayers, kv_bytes(key_of(i)));
      }
      const SessionReply reply = transact(session, request);
      ASSERT_EQ(reply.status, Status::ok) << to_string(reply.status) << " " << reply.message;
      const auto results = read_kv_reply(reply.output, request.bytes());
      ASSERT_TRUE(results);
      for (uint64_t i = 0; i < kKeysAtOnce; ++i) {
        const bool is_found = (*results)[i].status == Status::ok;
        ASSERT_EQ(is_found, content_.contains(first + i)) << key_of(first + i);
      }
    }
  }

  static constexpr uint64_t kKeysPerLayer = 3;
  static constexpr uint64_t kKeys = 3200 * kKeysPerLayer;
  static constexpr uint64_t kKeysAtOnce = 16;
  static constexpr std::chrono::seconds kPatience{60};

  TestFolder folder_;
  Config config_ = folder_.config("idle", 1);
  std::set<uint64_t> content_;
};

TEST_F(IdleMemoryTest, ChurnInSmallLayersLeavesNoPagesThatNoSnapshotFrees) {
  std::mt19937_64 random(seed());
  LauncherProcess launcher(config_);
  ASSERT_EQ(launcher.next_line(), "running");
  ASSERT_NO_FATAL_FAILURE(create_storage());
  auto session = SessionClient::connect(config_.cluster.run_dir, 0);
  ASSERT_TRUE(session) << session.error().message;
  ASSERT_NO_FATAL_FAILURE(churn(**session, random, rounds(500, 35'000)));
  // Snapshots during the churn may have freed pages, so the churn continues until the pool is low.
  // If the cluster became idle with enough free pages, this test would show nothing.
  uint64_t percent_before = free_percent();
  for (int more = 0; percent_before >= kLowWater && more < 200; ++more) {
    ASSERT_NO_FATAL_FAILURE(churn(**session, random, 20));
    percent_before = free_percent();
  }
  ASSERT_LT(percent_before, kLowWater);
  const auto stopped = Clock::now();
  uint64_t percent = percent_before;
  while (percent < kLowWater && Clock::now() - stopped < kPatience) {
    // this sleep does not synchronise: it spares the processes that the test waits for
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    percent = free_percent();
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - stopped);
  std::printf("%lu %% of the pages were free, and %lu %% after %ld ms of idleness; %s\n",
              percent_before, percent, static_cast<long>(took.count()),
              status().at("snapshots").dump().c_str());
  EXPECT_GE(percent, kLowWater) << status().dump(1);
  ASSERT_NO_FATAL_FAILURE(expect_content(**session));
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

/// Aborted transactions alone use up the pages, before the first commit after a start-up. The test
/// does so after the first start-up, and after one that recovers data. In both cases the logs have
/// closed no epoch yet.
TEST_F(IdleMemoryTest, AbortedTransactionsBeforeTheFirstCommitLeaveNoPagesThatNoSnapshotFrees) {
  for (const bool has_data : {false, true}) {
    SCOPED_TRACE(has_data ? "after a recovery" : "an empty database");
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running");
    if (!has_data) {
      ASSERT_NO_FATAL_FAILURE(create_storage());
    }
    auto session = SessionClient::connect(config_.cluster.run_dir, 0);
    ASSERT_TRUE(session) << session.error().message;
    ASSERT_NO_FATAL_FAILURE(abort_until_low(**session, 0));
    ASSERT_NO_FATAL_FAILURE(expect_pages_back());
    ASSERT_NO_FATAL_FAILURE(expect_content(**session));
    if (!has_data) {
      ASSERT_NO_FATAL_FAILURE(fill(**session));
    }
    kill(launcher.pid(), SIGTERM);
    EXPECT_EQ(launcher.wait(), 0);
  }
  LauncherProcess launcher(config_);
  ASSERT_EQ(launcher.next_line(), "running");
  auto session = SessionClient::connect(config_.cluster.run_dir, 0);
  ASSERT_TRUE(session) << session.error().message;
  ASSERT_NO_FATAL_FAILURE(expect_content(**session));
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

}  // namespace
}  // namespace atolldb::test
