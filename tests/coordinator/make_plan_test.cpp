// Plans of snapshot jobs: which node, mapper and reducer does what.
#include "coordinator/snapshots/make_plan.h"

#include <gtest/gtest.h>

#include "tests/engine/log/written_log.h"

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

std::vector<JobThreads> recovery_of(const Config& config) { return threads_of(config, {}); }

TEST(MakePlanTest, ANodesStreamsGoToItsMappersInTurnAndThoseOfLostNodesToAnyMapper) {
  test::MemoryFileSystem files;
  const auto assigned =
      assign_streams(files, recovery_of(two_nodes()),
                     {stream(0, 0), stream(0, 1), stream(0, 2), stream(5, 0), stream(5, 1)});
  ASSERT_TRUE(assigned) << assigned.error().message;
  const std::vector<PlannedMapper>& mappers = *assigned;
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

/// A log of one logger in several files, as a recovery finds it.
class LongLog : public testing::Test {
 protected:
  static constexpr uint64_t kEpochs = 40;

  void SetUp() override {
    ASSERT_EQ(data_.begin({test::kFirst}, 8), "");
    data_.write_all(1, kEpochs);  // three blocks each, so files begin within epochs, too
    auto start = examine(data_.files, "/data");
    ASSERT_TRUE(start) << start.error().message;
    ASSERT_EQ(start->streams_to_read.size(), 1u);
    whole_ = start->streams_to_read[0];
  }

  test::DataDirectory data_;
  PlannedStream whole_;
};

TEST_F(LongLog, IsSplitIntoAdjacentPartsOfAboutTheSameSize) {
  for (const uint32_t parts : {1u, 2u, 3u, 8u, 64u}) {
    const auto split = split_stream(data_.files, whole_, parts);
    ASSERT_TRUE(split) << split.error().message;
    EXPECT_GE(split->size(), std::min(parts, 8u));
    EXPECT_LE(split->size(), parts);
    EXPECT_EQ(split->front().stream.covered_epoch, whole_.stream.covered_epoch);
    EXPECT_EQ(split->back().last_epoch, whole_.last_epoch);
    for (size_t i = 0; i < split->size(); ++i) {
      const PlannedStream& part = (*split)[i];
      EXPECT_LT(part.stream.covered_epoch, part.last_epoch) << i;
      const uint64_t before = i == 0 ? 0 : (*split)[i - 1].last_epoch;
      EXPECT_EQ(part.stream.covered_epoch, before);
      if (parts <= 8) {
        const uint64_t epochs = part.last_epoch - part.stream.covered_epoch;
        EXPECT_LE(epochs, 2 * kEpochs / parts + 6) << i << " of " << parts;
      }
    }
  }
}

TEST_F(LongLog, OfWhichASnapshotCoversAPartIsSplitInTheRest) {
  whole_.stream.covered_epoch = 30;
  whole_.last_epoch = 35;
  const auto split = split_stream(data_.files, whole_, 8);
  ASSERT_TRUE(split);
  EXPECT_GE(split->size(), 2u);
  for (const PlannedStream& part : *split) {
    EXPECT_GE(part.stream.covered_epoch, 30u);
    EXPECT_LE(part.last_epoch, 35u);
  }
}

TEST_F(LongLog, GoesToAllMappersOfItsNode) {
  for (const uint32_t mappers : {1u, 2u, 5u, 8u}) {
    const auto assigned = assign_streams(data_.files, {{mappers, 1}, {mappers, 1}}, {whole_});
    ASSERT_TRUE(assigned) << assigned.error().message;
    ASSERT_EQ(assigned->size(), mappers);
    for (uint32_t i = 0; i < mappers; ++i) {
      EXPECT_EQ((*assigned)[i].node, 0);
      EXPECT_EQ((*assigned)[i].mapper, i);
      EXPECT_EQ((*assigned)[i].streams.size(), 1u);
    }
  }
}

TEST_F(LongLog, InOneFileStaysWhole) {
  ASSERT_EQ(data_.begin({test::kSecond}, 4096), "");
  data_.write_all(kEpochs + 100, kEpochs + 110);
  const auto start = examine(data_.files, "/data");
  ASSERT_TRUE(start) << start.error().message;
  const auto split = split_stream(data_.files, start->streams_to_read.back(), 8);
  ASSERT_TRUE(split);
  EXPECT_EQ(split->size(), 1u);
}

TEST(MakePlanTest, TheThreadsAreThoseOfARecoveryOrOfARunningCluster) {
  Config config = two_nodes();
  config.nodes[0].recovery_threads = 7;
  SnapshotTask task;
  const std::vector<JobThreads> recovery = {{7, 7}, {1, 3}};
  EXPECT_EQ(threads_of(config, task), recovery);
  task.has_volatile_pages = true;
  const std::vector<JobThreads> running = {{2, 1}, {1, 3}};
  EXPECT_EQ(threads_of(config, task), running);
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
  // The tree has changed between the answers, so the last cut lies before the cut to its left.
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
