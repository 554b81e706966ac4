// Who does what in a run of the gleaner.
#include "coordinator/gleaner/make_plan.h"

#include <gtest/gtest.h>

#include "tests/engine/log/memory_file_system.h"

namespace atolldb {
namespace {

GleanStream stream(uint16_t node, uint16_t logger) {
  GleanStream stream;
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

TEST(MakePlanTest, ANodesStreamsGoToItsMappersInTurnAndThoseOfLostNodesToAnybody) {
  const auto mappers = assign_streams(
      two_nodes(), {stream(0, 0), stream(0, 1), stream(0, 2), stream(5, 0), stream(5, 1)});
  ASSERT_EQ(mappers.size(), 3u);
  EXPECT_EQ(mappers[0].node, 0);
  EXPECT_EQ(mappers[0].mapper, 0);
  EXPECT_EQ(mappers[0].streams.size(), 2u);  // loggers 0 and 2
  EXPECT_EQ(mappers[1].mapper, 1);
  EXPECT_EQ(mappers[1].streams.size(), 2u);  // logger 1, and one of the node that is no more
  EXPECT_EQ(mappers[2].node, 1);
  EXPECT_EQ(mappers[2].streams.size(), 1u);
  EXPECT_EQ(mappers[2].streams[0].stream.node, 5);
}

TEST(MakePlanTest, NamesAllReducersAndTheRootsOfTheBase) {
  GleanTask task;
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
  for (const GleanStorage& storage : plan->storages) EXPECT_GE(storage.partitions.size(), 1u);
}

}  // namespace
}  // namespace atolldb
