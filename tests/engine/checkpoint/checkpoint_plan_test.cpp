// Messages of checkpoints and replays: what is encoded is decoded, and all else is refused.
#include "engine/checkpoint/checkpoint_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "shared/base/limits.h"

namespace atolldb {
namespace {

std::vector<DividedStorage> divided() {
  DividedStorage tree{3, {}};
  tree.ranges.push_back({"", "m", 0, 1});
  tree.ranges.push_back({"m", std::nullopt, 0, 1});
  DividedStorage array{8, {}};
  array.ranges.push_back({"", std::nullopt, 0, 500});
  array.ranges.push_back({"", std::nullopt, 500, 900});
  return {tree, array};
}

ReplayPlan replay_plan() {
  ReplayPlan plan;
  plan.checkpoint = 4;
  plan.first_epoch = 70;
  plan.cut_epoch = 99;
  plan.last_storage = 12;
  plan.order = ReplayOrder::oldest_first;
  PlannedStream planned;
  planned.stream.directory = "/disk0";
  planned.stream.node = 1;
  planned.stream.logger = 2;
  planned.stream.incarnation = 6;
  planned.stream.start_epoch = 50;
  planned.last_epoch = 99;
  plan.streams.push_back(planned);
  return plan;
}

TEST(CheckpointPlan, RangesSurviveTheirEncoding) {
  const auto decoded = decode_divided(encode_divided(divided()));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, divided());
  EXPECT_TRUE(decode_divided(encode_divided({}))->empty());
}

TEST(CheckpointPlan, PlansOfReplaysSurviveTheirEncoding) {
  const auto decoded = decode_replay_plan(encode_replay_plan(replay_plan()));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->checkpoint, 4u);
  EXPECT_EQ(decoded->first_epoch, 70u);
  EXPECT_EQ(decoded->cut_epoch, 99u);
  EXPECT_EQ(decoded->last_storage, 12u);
  EXPECT_EQ(decoded->order, ReplayOrder::oldest_first);
  ASSERT_EQ(decoded->streams.size(), 1u);
  const PlannedStream& planned = decoded->streams.front();
  EXPECT_EQ(planned.stream.directory, "/disk0");
  EXPECT_EQ(planned.stream.node, 1);
  EXPECT_EQ(planned.stream.logger, 2);
  EXPECT_EQ(planned.stream.incarnation, 6u);
  EXPECT_EQ(planned.stream.start_epoch, 50u);
  EXPECT_EQ(planned.last_epoch, 99u);
}

TEST(CheckpointPlan, OtherBytesAreRefused) {
  auto ranges = encode_divided(divided());
  EXPECT_FALSE(decode_replay_plan(ranges));
  EXPECT_FALSE(decode_divided(std::span(ranges).first(ranges.size() - 1)));
  ranges.push_back(std::byte{0});
  EXPECT_FALSE(decode_divided(ranges));
  auto plan = encode_replay_plan(replay_plan());
  EXPECT_FALSE(decode_divided(plan));
  EXPECT_FALSE(decode_replay_plan(std::span(plan).first(plan.size() - 1)));
}

TEST(CheckpointPlan, RangesThatContradictThemselvesAreRefused) {
  auto storages = divided();
  std::swap(storages[0], storages[1]);
  EXPECT_FALSE(decode_divided(encode_divided(storages))) << "ids descend";
  storages = divided();
  storages[1].ranges.pop_back();
  EXPECT_FALSE(decode_divided(encode_divided(storages))) << "a storage has fewer ranges";
  storages = divided();
  storages[0].id = 0;
  EXPECT_FALSE(decode_divided(encode_divided(storages))) << "no storage has the id 0";
}

TEST(CheckpointPlan, PlansThatContradictThemselvesAreRefused) {
  ReplayPlan plan = replay_plan();
  plan.streams.front().last_epoch = 100;
  EXPECT_FALSE(decode_replay_plan(encode_replay_plan(plan))) << "a stream ends after the cut";
  plan = replay_plan();
  plan.first_epoch = 0;
  EXPECT_FALSE(decode_replay_plan(encode_replay_plan(plan))) << "epochs begin with 1";
  plan = replay_plan();
  plan.cut_epoch = kMaxEpoch + 1;
  EXPECT_FALSE(decode_replay_plan(encode_replay_plan(plan))) << "the cut is no epoch";
  plan.cut_epoch = kMaxEpoch;
  EXPECT_TRUE(decode_replay_plan(encode_replay_plan(plan)));
}

}  // namespace
}  // namespace atolldb
