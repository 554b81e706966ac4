// Segments of a cluster, and which process gets which of them.
#include "ops/launcher/segment_set.h"

#include <gtest/gtest.h>

#include "shared/base/limits.h"
#include "soc/node/node_segments.h"

namespace atolldb {
namespace {

Config small_config(DurabilityMode mode) {
  Config config;
  config.nodes.assign(2, NodeConfig{});
  config.nodes[1].reducers = 3;
  config.durability.mode = mode;
  config.memory.volatile_pool = uint64_t{2} << 20;
  config.memory.log_buffer = uint64_t{2} << 20;
  config.memory.exchange = uint64_t{4} << 20;
  return config;
}

TEST(SegmentSetTest, WithALogEveryNodeGetsTheExchangeOfAllNodesAndTheCoordinatorNone) {
  const auto set = SegmentSet::create(small_config(DurabilityMode::durable));
  ASSERT_TRUE(set) << set.error().message;
  for (const uint32_t node : {0u, 1u}) {
    const auto files = set->of_process(node);
    EXPECT_TRUE(files.contains("node0.exchange"));
    EXPECT_TRUE(files.contains("node1.exchange"));
  }
  EXPECT_FALSE(set->of_process(kCoordinator).contains("node0.exchange"));
  EXPECT_TRUE(set->all().contains("node1.exchange"));
}

TEST(SegmentSetTest, WithoutALogThereIsNoExchange) {
  const auto set = SegmentSet::create(small_config(DurabilityMode::off));
  ASSERT_TRUE(set) << set.error().message;
  for (const auto& [name, file] : set->all()) EXPECT_FALSE(name.ends_with("exchange")) << name;
  EXPECT_EQ(node_segment_sizes(small_config(DurabilityMode::off), 1).exchange, 0u);
}

TEST(SegmentSetTest, InboxesAreApartAndAfterTheHeader) {
  const Config config = small_config(DurabilityMode::durable);
  const uint64_t bytes = node_segment_sizes(config, 1).exchange;
  EXPECT_EQ(bytes, uint64_t{12} << 20);
  uint64_t free_from = sizeof(SegmentHeader);
  for (uint32_t reducer = 0; reducer < 3; ++reducer) {
    EXPECT_GE(inbox_offset(config, reducer), free_from);
    EXPECT_EQ(inbox_offset(config, reducer) % kPageBytes, 0u);
    free_from = inbox_offset(config, reducer) + inbox_bytes(config);
  }
  EXPECT_LE(free_from, bytes);
}

}  // namespace
}  // namespace atolldb
