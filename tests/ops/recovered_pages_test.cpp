// Recovery uses the gleaner, and creates no volatile page, not even a root. Reads use the snapshot,
// and only a write installs pages.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/array/array.h"
#include "engine/mastertree/mastertree.h"
#include "engine/sequential/sequential.h"
#include "ops/cluster/cluster.h"
#include "soc/procedure/procedure.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb {
namespace {

/// More records than the root page of a storage holds.
constexpr uint64_t kRecordsPerStorage = 2000;

struct Storages {
  explicit Storages(JobContext& context)
      : array(*context.storage("array", StorageType::array)),
        tree(*context.storage("tree", StorageType::mastertree)),
        layered(*context.storage("layered", StorageType::mastertree)),
        heap(*context.storage("heap", StorageType::sequential)) {}

  /// Returns keys that share their first slice with nine others, and differ after it.
  static std::string layered_key(uint64_t number) {
    return "slice" + std::to_string(100 + number / 10 % 900) + "-" + std::to_string(number);
  }
  Status write(Transaction& txn, uint64_t number) const {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    Status status = array.update(txn, number, 0, sizeof(number), &number);
    if (status == Status::ok) status = tree.upsert(txn, ordered_key(number), bytes);
    const std::string key = layered_key(number);
    if (status == Status::ok) status = layered.upsert(txn, std::as_bytes(std::span(key)), bytes);
    return status == Status::ok ? heap.append(txn, bytes) : status;
  }
  /// Returns not_found if one of the records has another number.
  Status read(Transaction& txn, uint64_t number) const {
    uint64_t found[3] = {};
    uint32_t bytes = 0;
    Status status = array.get(txn, number, 0, sizeof(uint64_t), &found[0]);
    if (status == Status::ok) {
      status = tree.get(txn, ordered_key(number), &found[1], sizeof(uint64_t), bytes);
    }
    const std::string key = layered_key(number);
    if (status == Status::ok) {
      status = layered.get(txn, std::as_bytes(std::span(key)), &found[2], sizeof(uint64_t), bytes);
    }
    for (const uint64_t one : found) {
      if (status == Status::ok && one != number) status = Status::not_found;
    }
    return status;
  }

  Array array;
  MasterTree tree;
  MasterTree layered;
  Sequential heap;
};

Result<std::string> write_all(JobContext& context) {
  const Storages storages(context);
  for (uint64_t number = context.node(); number < kRecordsPerStorage;
       number += context.node_count()) {
    const Status status = run(context.transaction(), context.backoff(), kMaxEpoch,
                              [&](Transaction& txn) { return storages.write(txn, number); });
    if (status != Status::ok) return make_error(ExitCode::failed, std::string(to_string(status)));
  }
  return std::string("written");
}

Result<std::string> read_all(JobContext& context) {
  const Storages storages(context);
  uint64_t appends = 0;
  const Status status =
      run(context.transaction(), context.backoff(), kMaxEpoch, [&](Transaction& txn) {
        Status one = Status::ok;
        for (uint64_t number = 0; number < kRecordsPerStorage && one == Status::ok; ++number) {
          one = storages.read(txn, number);
        }
        SequentialCursor cursor(storages.heap, txn);
        for (appends = 0; one == Status::ok; appends += one == Status::ok ? 1 : 0) {
          one = cursor.next();
        }
        return one == Status::end_of_scan ? Status::ok : one;
      });
  if (status != Status::ok) return make_error(ExitCode::failed, std::string(to_string(status)));
  return std::to_string(appends);
}

ATOLL_REGISTER_JOB(kWriteAll, "test.write_all_storages", write_all);
ATOLL_REGISTER_JOB(kReadAll, "test.read_all_storages", read_all);

class RecoveredPagesTest : public testing::Test {
 protected:
  std::unique_ptr<Cluster> launch() {
    Config config = folder_.config("recovered");
    config.memory.volatile_pool = uint64_t{16} << 20;
    auto cluster = Cluster::launch(config, LaunchMode::thread);
    if (!cluster) ADD_FAILURE() << cluster.error().message;
    return cluster ? *std::move(cluster) : nullptr;
  }
  static void run_job(Cluster& cluster, const std::string& name, const std::string& wanted) {
    const auto outputs = cluster.run_job(name, "");
    ASSERT_TRUE(outputs) << outputs.error().message;
    for (const JobOutput& output : *outputs) {
      ASSERT_TRUE(output.output) << name << ": " << output.output.error().message;
      EXPECT_EQ(*output.output, wanted);
    }
  }
  /// Number of pages taken from a pool since the cluster started.
  static uint64_t pages_taken(Cluster& cluster) {
    const auto status = cluster.coordinator(ControlOperation::status, Json::object());
    if (!status) ADD_FAILURE() << status.error().message;
    uint64_t taken = 0;
    for (const Json& node : status->at("nodes")) {
      taken += node.at("pages_allocated").get<uint64_t>();
    }
    return taken;
  }
  /// Number of storages with a volatile root. Also checks that all storages are in a snapshot.
  static uint64_t volatile_roots(const Cluster& cluster) {
    uint64_t roots = 0;
    uint64_t storages = 0;
    for (const StorageControl& storage : cluster.view()->control->storages) {
      if (storage.state.load(std::memory_order_acquire) !=
          static_cast<uint32_t>(StorageState::ready)) {
        continue;
      }
      ++storages;
      roots += storage.root.load_acquire().is_null() ? 0 : 1;
      EXPECT_NE(storage.root.snapshot_word.load(std::memory_order_acquire), 0u) << storage.name;
    }
    EXPECT_EQ(storages, 4u);
    return roots;
  }

  test::TestFolder folder_;
};

TEST_F(RecoveredPagesTest, AStartBringsBackNoVolatilePageOfAnyStorage) {
  {
    const auto cluster = launch();
    ASSERT_NE(cluster, nullptr);
    ASSERT_TRUE(cluster->create_storage("array", StorageType::array, 8, kRecordsPerStorage));
    ASSERT_TRUE(cluster->create_storage("tree", StorageType::mastertree, 8));
    ASSERT_TRUE(cluster->create_storage("layered", StorageType::mastertree, 8));
    ASSERT_TRUE(cluster->create_storage("heap", StorageType::sequential));
    run_job(*cluster, "test.write_all_storages", "written");
    EXPECT_GT(pages_taken(*cluster), 50u);
    const auto ended = cluster->shutdown();
    ASSERT_TRUE(ended) << ended.error().message;
  }
  // The first start reads the log. The second one reads the first one's snapshot, which has
  // everything.
  for (int start = 2; start <= 3; ++start) {
    const auto cluster = launch();
    ASSERT_NE(cluster, nullptr);
    EXPECT_EQ(volatile_roots(*cluster), 0u);
    EXPECT_EQ(pages_taken(*cluster), 0u);
    run_job(*cluster, "test.read_all_storages", std::to_string(kRecordsPerStorage));
    EXPECT_EQ(pages_taken(*cluster), 0u) << "reads install pages";
    EXPECT_EQ(volatile_roots(*cluster), 0u);
    const auto ended = cluster->shutdown();
    ASSERT_TRUE(ended) << ended.error().message;
  }
}

}  // namespace
}  // namespace atolldb
