// An hour of churn over constant content: records are updated, erased and inserted again, and
// snapshots are taken. The files of snapshots stay at twice the live bytes. The pool needs as many
// pages as after a fresh load. A snapshot writes as many pages as were changed (R67, R70, R74).
//
// The whole run is one hour with ATOLL_LONG=1. By default it is ten seconds, although a run in CI
// could take five minutes: all tests together have 35 minutes there. The files reach their largest
// size within seconds, because each second takes dozens of snapshots. ATOLL_CHURN_SECONDS sets
// another duration.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/snapshot/stored_snapshots.h"
#include "ops/cli/running_cluster.h"
#include "ops/cli/snapshot_data.h"
#include "shared/client/session_client.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ordered_bytes.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kChurn = "churn";
constexpr uint32_t kChurnNodes = 2;
constexpr uint64_t kChurnKeys = 16'000;
constexpr uint32_t kChurnValueBytes = 400;
constexpr uint64_t kChurnKeysAtOnce = 50;  // keys of one transaction
/// Numbers of records changed between two snapshots.
constexpr std::array<uint64_t, 3> kChurnChanges = {4, 20, 100};

/// A cluster that holds all keys, with one client per node.
class LoadedCluster {
 public:
  LoadedCluster(const Config& config, std::mt19937_64& random)
      : config_(config), random_(random), launcher_(config) {}

  void fill() {
    ASSERT_EQ(launcher_.next_line(), "running");
    const auto created = cli::RunningCluster(config_).create_storage(
        kChurn, StorageType::mastertree, kChurnValueBytes);
    ASSERT_TRUE(created) << created.error().message;
    for (uint32_t node = 0; node < kChurnNodes; ++node) {
      auto session = SessionClient::connect(config_.cluster.run_dir, node);
      ASSERT_TRUE(session) << session.error().message;
      sessions_.push_back(*std::move(session));
    }
    std::vector<uint64_t> keys(kChurnKeys);
    for (uint64_t i = 0; i < kChurnKeys; ++i) keys[i] = i;
    ASSERT_NO_FATAL_FAILURE(put(keys));
  }
  void put(const std::vector<uint64_t>& keys) {
    std::array<std::byte, kChurnValueBytes> value;
    value.fill(static_cast<std::byte>(random_()));
    transact(keys, [&](KvRequest& request, const auto& key) { request.put(kChurn, key, value); });
  }
  void erase(const std::vector<uint64_t>& keys) {
    transact(keys, [](KvRequest& request, const auto& key) { request.erase(kChurn, key); });
  }

  Json ask(ControlOperation operation) const {
    const auto answer =
        cli::RunningCluster(config_).coordinator(operation, {}, Cluster::kDefaultTimeout);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : Json::object();
  }
  uint64_t take_snapshot() const { return ask(ControlOperation::snapshot_take).at("id"); }
  /// Returns the used pages of all pools, after snapshots without changes. The installers of these
  /// snapshots reclaim the pages that are left to reclaim.
  uint64_t used_pages() const {
    for (int i = 0; i < 3; ++i) take_snapshot();
    uint64_t used = 0;
    for (const Json& node : ask(ControlOperation::status).at("nodes")) {
      used +=
          node.at("pool").at("total").get<uint64_t>() - node.at("pool").at("free").get<uint64_t>();
    }
    return used;
  }
  struct FileBytes {
    uint64_t pages = 0;
    uint64_t others = 0;  // header pages and metadata
  };
  /// Returns the bytes of the files in the data directory, by snapshot.
  std::map<uint64_t, FileBytes> file_bytes() const {
    std::map<uint64_t, FileBytes> bytes;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(config_.cluster.data_dir)) {
      const auto name = parse_snapshot_file_name(entry.path().filename().string());
      if (!name) continue;
      const uint64_t size = entry.file_size();
      const uint64_t header =
          name->kind == StoredSnapshotKind::pages ? std::min<uint64_t>(size, kPageBytes) : size;
      bytes[name->snapshot].pages += size - header;
      bytes[name->snapshot].others += header;
    }
    return bytes;
  }
  void stop() {
    sessions_.clear();
    kill(launcher_.pid(), SIGTERM);
    EXPECT_EQ(launcher_.wait(), 0);
  }

 private:
  template <typename Add>
  void transact(const std::vector<uint64_t>& keys, Add&& add) {
    for (size_t first = 0; first < keys.size(); first += kChurnKeysAtOnce) {
      KvRequest request;
      const size_t end = std::min<size_t>(keys.size(), first + kChurnKeysAtOnce);
      for (size_t i = first; i < end; ++i) add(request, ordered_bytes(keys[i]));
      const SessionReply reply =
          sessions_[random_() % kChurnNodes]->call("kv.txn", request.bytes());
      ASSERT_EQ(reply.status, Status::ok) << reply.message;
    }
  }

  const Config config_;
  std::mt19937_64& random_;
  LauncherProcess launcher_;
  std::vector<std::unique_ptr<SessionClient>> sessions_;
};

class SpaceTest : public testing::Test {
 protected:
  Config config(const std::string& name) const {
    Config config = folder_.config(name, kChurnNodes);
    config.memory.volatile_pool = uint64_t{64} << 20;
    config.gleaner.interval = std::chrono::hours(24);  // only the test takes snapshots
    return config;
  }

  /// Changes `count` records: half of them are updated, the others erased and inserted again.
  void change(LoadedCluster& cluster, uint64_t count) {
    std::set<uint64_t> chosen;
    while (chosen.size() < count) chosen.insert(random_() % kChurnKeys);
    std::vector<uint64_t> keys(chosen.begin(), chosen.end());
    std::ranges::shuffle(keys, random_);
    const auto middle = keys.begin() + static_cast<ptrdiff_t>(count / 2);
    const std::vector<uint64_t> updated(keys.begin(), middle);
    const std::vector<uint64_t> erased(middle, keys.end());
    ASSERT_NO_FATAL_FAILURE(cluster.erase(erased));
    ASSERT_NO_FATAL_FAILURE(cluster.put(updated));
    ASSERT_NO_FATAL_FAILURE(cluster.put(erased));
  }

  /// Takes a snapshot, and adds up what it wrote because of `changes`.
  void take_snapshot(LoadedCluster& cluster, uint64_t changes) {
    const uint64_t id = cluster.take_snapshot();
    const Json space = cluster.ask(ControlOperation::status).at("snapshots").at("space");
    auto files = cluster.file_bytes();
    uint64_t stored = 0;
    uint64_t others = 0;
    for (const auto& [snapshot, bytes] : files) {
      stored += bytes.pages + bytes.others;
      others += bytes.others;
    }
    const uint64_t live = space.at("live_bytes");
    const uint64_t written = files[id].pages;
    ASSERT_GT(live, kChurnKeys * kChurnValueBytes);
    // A rewrite follows the snapshot with which the files exceed their target. So before this
    // snapshot, the files were within the target for the live bytes of that time. A header counts
    // as a page.
    const uint64_t most_live = std::max(live, std::exchange(live_before_, live));
    ASSERT_LE(stored, most_live * 2 + written + others) << "snapshot " << id;
    ASSERT_FALSE(space.at("lacks_room"));
    if (stored * most_.live > most_.stored * live) most_ = {stored, live, id};
    const uint64_t rewritten = space.at("rewritten_bytes");
    Cost& cost = costs_[changes];
    ++cost.snapshots;
    cost.pages += (written - std::min(written, rewritten - rewritten_bytes_)) / kPageBytes;
    rewritten_bytes_ = rewritten;
  }

  struct Space {
    uint64_t stored = 0;
    uint64_t live = 1;
    uint64_t snapshot = 0;
  };
  struct Cost {
    uint64_t snapshots = 0;
    uint64_t pages = 0;  // pages that these snapshots wrote, without rewrites
    double mean() const { return static_cast<double>(pages) / static_cast<double>(snapshots); }
  };

  TestFolder folder_;
  std::mt19937_64 random_{seed()};
  Space most_;                // the largest files, relative to the live bytes
  uint64_t live_before_ = 0;  // live bytes at the previous snapshot
  uint64_t rewritten_bytes_ = 0;
  std::map<uint64_t, Cost> costs_;  // by number of changed records
};

TEST_F(SpaceTest, ChurnOfConstantContentNeedsConstantSpace) {
  const Config churned_config = config("space");
  const auto duration = std::chrono::seconds(seconds_of_test("ATOLL_CHURN_SECONDS", 10, 3'600));
  uint64_t used_after_churn = 0;
  {
    LoadedCluster churned(churned_config, random_);
    ASSERT_NO_FATAL_FAILURE(churned.fill());
    churned.take_snapshot();
    const auto end = Clock::now() + duration;
    for (uint64_t round = 0; Clock::now() < end || (rewritten_bytes_ == 0 && round < 100);
         ++round) {
      const uint64_t changes = kChurnChanges[round % kChurnChanges.size()];
      ASSERT_NO_FATAL_FAILURE(change(churned, changes));
      ASSERT_NO_FATAL_FAILURE(take_snapshot(churned, changes));
    }
    used_after_churn = churned.used_pages();
    churned.stop();
  }
  cli::SnapshotOptions options;
  options.data_dir = churned_config.cluster.data_dir;
  const auto verified = cli::verify_snapshots({}, options);
  EXPECT_TRUE(verified) << verified.error().message;

  LoadedCluster fresh(config("fresh"), random_);
  ASSERT_NO_FATAL_FAILURE(fresh.fill());
  const uint64_t used_after_load = fresh.used_pages();
  fresh.stop();

  std::printf("files: at most %.3f times the live bytes (%llu of %llu, snapshot %llu)\n",
              static_cast<double>(most_.stored) / static_cast<double>(most_.live),
              most_.stored + 0ULL, most_.live + 0ULL, most_.snapshot + 0ULL);
  std::printf("pool: %llu pages used, %llu after a fresh load\n", used_after_churn + 0ULL,
              used_after_load + 0ULL);
  for (const auto& [changes, cost] : costs_) {
    std::printf("%llu snapshots after %llu changed records: %.1f pages written\n",
                cost.snapshots + 0ULL, changes + 0ULL, cost.mean());
    // Hardly any two of the records are in one page. A snapshot also writes the path from each page
    // to the root, of which the pages share parts, and a header per node.
    EXPECT_LE(cost.mean(), static_cast<double>(2 * changes + 16));
    EXPECT_GE(cost.mean(), static_cast<double>(changes) / 2);
  }
  std::printf("%llu bytes rewritten\n", rewritten_bytes_ + 0ULL);

  EXPECT_GT(rewritten_bytes_, 0u) << "the run was too short";
  EXPECT_LE(used_after_churn, used_after_load + used_after_load / 20);
}

}  // namespace
}  // namespace atolldb::test
