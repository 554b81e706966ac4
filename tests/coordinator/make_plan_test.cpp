// Plans of snapshot jobs: which node, mapper and reducer does what.
#include "coordinator/snapshots/make_plan.h"

#include <gtest/gtest.h>

#include "tests/engine/log/memory_file_system.h"

namespace atolldb {
namespace {

PlannedStream stream(uint16_t node, uint16_t logger) {
  PlannedStream stream;
  stream.stream.directory = "/data";
  stream.stream.node = node;
  stream.stream.logger = logger;
  stream.stream.incarnation = 1;
  return stream;
}

Config two_nodes() {
  Config config;
  config.nodes.assign(2, NodeConfig{});
  config.nodes[0].mappers = 2;
  config.nodes[1].reducers = 3;
  return config;
}

TEST(MakePlanTest, ANodesStreamsGoToItsMappersInTurnAndThoseOfLostNodesToAnyMapper) {
  const auto mappers = assign_streams(
      two_nodes(), {stream(0, 0), stream(0, 1), stream(0, 2), stream(5, 0), stream(5, 1)});
  ASSERT_EQ(mappers.size(), 3u);
  EXPECT_EQ(mappers[0].node, 0);
  EXPECT_EQ(mappers[0].mapper, 0);
  EXPECT_EQ(mappers[0].streams.size(), 2u);  // loggers 0 and 2
  EXPECT_EQ(mappers[1].mapper, 1);
  // logger 1 of this node, and a logger of a node that no longer exists
  EXPECT_EQ(mappers[1].streams.size(), 2u);
  EXPECT_EQ(mappers[2].node, 1);
  EXPECT_EQ(mappers[2].streams.size(), 1u);
  EXPECT_EQ(mappers[2].streams[0].stream.node, 5);
}

TEST(MakePlanTest, NamesAllReducersAndTheRootsOfTheBase) {
  SnapshotTask task;
  task.snapshot = 4;
  task.epoch = 90;
  task.streams = {stream(1, 0)};
  task.storages = {{3, StorageType::mastertree, "tree", 8, 0},
                   {2, StorageType::array, "array", 16, 1000}};
  SnapshotMetadata base;
  base.id = 3;
  base.epoch = 50;
  const SnapshotPointer root = SnapshotPointer::make(3, 255, 9);
  base.storages = {{1, StorageType::array, "dropped", SnapshotPointer::make(3, 0, 1), 0},
                   {2, StorageType::array, "array", root, 0}};
  base.files = {{3, 255, "/data", 20}};
  task.base = base;
  test::MemoryFileSystem files;
  ASSERT_TRUE(files.make_directory("/data/node1"));
  const auto plan = make_plan(two_nodes(), files, task);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->snapshot, 4u);
  EXPECT_EQ(plan->base, 3u);
  EXPECT_EQ(plan->base_epoch, 50u);
  EXPECT_EQ(plan->files, base.files);
  const std::vector<ReducerPlace> reducers = {{0, 0}, {1, 0}, {1, 1}, {1, 2}};
  EXPECT_EQ(plan->reducers, reducers);
  ASSERT_EQ(plan->storages.size(), 2u);
  EXPECT_EQ(plan->storages[0].id, 2u);
  EXPECT_EQ(plan->storages[0].base_root, root);
  EXPECT_TRUE(plan->storages[1].base_root.is_null());
  for (const PlannedStorage& storage : plan->storages) EXPECT_GE(storage.partitions.size(), 1u);
}

/// The file with the root of the base is missing. So no samples are read from the root, and a
/// composer reports the missing file later.
TEST(MakePlanTest, MarksTheStoragesWithPagesInVictims) {
  SnapshotTask task;
  task.snapshot = 4;
  task.epoch = 90;
  task.storages = {{2, StorageType::array, "array", 16, 1000},
                   {3, StorageType::mastertree, "tree", 8, 0}};
  SnapshotMetadata base;
  base.id = 3;
  base.epoch = 50;
  base.storages = {{2, StorageType::array, "array", SnapshotPointer::make(3, 255, 9), 0},
                   {3, StorageType::mastertree, "tree", SnapshotPointer::make(3, 255, 8), 0}};
  base.files = {{1, 0, "/data", 20}, {3, 255, "/data", 20}};
  base.live = {{2, 3, 255, 5, 0}, {3, 1, 0, 4, 2}, {3, 3, 255, 1, 0}};
  task.base = base;
  task.victims = {1};
  test::MemoryFileSystem files;
  ASSERT_TRUE(files.make_directory("/data"));
  const auto plan = make_plan(two_nodes(), files, task);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->victims, std::vector<uint32_t>{1});
  ASSERT_EQ(plan->storages.size(), 2u);
  EXPECT_FALSE(plan->storages[0].has_victims);
  EXPECT_TRUE(plan->storages[1].has_victims && plan->storages[1].has_victims_below);
}

/// Returns a partition that begins at this slice and belongs to the reducer `owner` of node 0.
PlannedPartition from(uint64_t slice, uint16_t owner) {
  std::string low;
  for (int shift = 56; slice != 0 && shift >= 0; shift -= 8) {
    low.push_back(static_cast<char>(slice >> shift & 0xff));
  }
  return {low, {0, owner}};
}

std::vector<PlannedStorage> tree_of(std::vector<PlannedPartition> partitions) {
  PlannedStorage tree;
  tree.id = 3;
  tree.type = StorageType::mastertree;
  tree.partitions = std::move(partitions);
  return {tree};
}

TEST(AlignPartitionsTest, BoundariesMoveDownToWhereATreeMayBeCut) {
  auto storages = tree_of({from(0, 0), from(0x1234, 1), from(uint64_t{1} << 63, 2)});
  const auto aligned = align_partitions(storages, [](uint32_t id, const auto& slices) {
    EXPECT_EQ(id, 3u);
    EXPECT_EQ(slices, (std::vector<uint64_t>{0x1234, uint64_t{1} << 63}));
    return Result<std::vector<uint64_t>>({0x1200, uint64_t{1} << 63});
  });
  ASSERT_TRUE(aligned);
  EXPECT_EQ(storages[0].partitions, (std::vector<PlannedPartition>{from(0, 0), from(0x1200, 1),
                                                                   from(uint64_t{1} << 63, 2)}));
}

TEST(AlignPartitionsTest, PartitionsThatAreEmptyThenAreNoMore) {
  auto storages = tree_of({from(0, 0), from(10, 1), from(20, 2), from(30, 3), from(40, 4)});
  // The tree also changed between the answers: a cut lies before the cut to its left.
  const auto aligned = align_partitions(storages, [](uint32_t, const auto&) {
    return Result<std::vector<uint64_t>>({0, 15, 15, 12});
  });
  ASSERT_TRUE(aligned);
  EXPECT_EQ(storages[0].partitions, (std::vector<PlannedPartition>{from(0, 1), from(15, 4)}));
}

TEST(AlignPartitionsTest, OthersAreNotAskedForAndAnErrorOrTooFewAnswersEndIt) {
  auto storages = tree_of({from(0, 0)});
  storages.push_back(tree_of({from(0, 0), from(10, 1)})[0]);
  storages[1].type = StorageType::array;
  const CutsOf none = [](uint32_t, const auto&) {
    ADD_FAILURE() << "nothing to cut";
    return Result<std::vector<uint64_t>>(std::vector<uint64_t>());
  };
  EXPECT_TRUE(align_partitions(storages, none));
  storages[1].type = StorageType::mastertree;
  EXPECT_FALSE(align_partitions(storages, [](uint32_t, const auto&) {
    return Result<std::vector<uint64_t>>(std::vector<uint64_t>());
  }));
  EXPECT_FALSE(align_partitions(storages, [](uint32_t, const auto&) {
    return Result<std::vector<uint64_t>>(make_error(ExitCode::failed, "no"));
  }));
}

}  // namespace
}  // namespace atolldb
