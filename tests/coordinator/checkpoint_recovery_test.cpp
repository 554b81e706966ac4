// The progress of a recovery from a checkpoint, and the pace of its nodes.
#include "coordinator/checkpoints/checkpoint_recovery.h"

#include <gtest/gtest.h>

#include "coordinator/checkpoints/checkpoint_job.h"

namespace atolldb::test {
namespace {

using std::chrono::milliseconds;

TEST(ReplayProgressTest, IsTheShareOfTheBytesThatWereRead) {
  EXPECT_EQ((ReplayProgress{0, 0}.percent()), 100u) << "there is nothing to read";
  EXPECT_EQ((ReplayProgress{0, 10}.percent()), 0u);
  EXPECT_EQ((ReplayProgress{999, 1000}.percent()), 99u);
  EXPECT_EQ((ReplayProgress{1000, 1000}.percent()), 100u);
  EXPECT_EQ((ReplayProgress{1001, 1000}.percent()), 100u);
}

TEST(ReplayProgressTest, TheTimeLeftFollowsFromTheRateSoFar) {
  EXPECT_EQ(replay_seconds_left({500, 1000}, milliseconds(999)), -1) << "too early for a rate";
  EXPECT_EQ(replay_seconds_left({0, 1000}, milliseconds(5000)), -1);
  EXPECT_EQ(replay_seconds_left({250, 1000}, milliseconds(2000)), 6);
  EXPECT_EQ(replay_seconds_left({1000, 1000}, milliseconds(2000)), 0);
}

TEST(ReplayProgressTest, IsTheSumOverAllNodes) {
  const Json sum = sum_of_progress(
      {{{"v", 1}, {"done", false}, {"bytes", 10u}, {"bytes_total", 30u}, {"records", 1u}},
       {{"v", 1}, {"done", true}, {"bytes", 20u}, {"bytes_total", 30u}, {"tombstones", {1u}}},
       Json()});
  EXPECT_EQ(sum, (Json{{"bytes", 30u}, {"bytes_total", 60u}, {"records", 1u}}));
  EXPECT_EQ(replay_progress_of(sum).percent(), 50u);
  EXPECT_EQ(replay_progress_of(Json::object()).percent(), 100u);
}

TEST(ReplayLimitTest, NoNodeIsFarAheadOfTheSlowestOneThatReplays) {
  const auto at = [](uint64_t bytes) {
    return Json{{"bytes", bytes}, {"bytes_total", kReplayWindowBytes}};
  };
  const std::vector<Json> progress = {at(700), at(300), at(500)};
  EXPECT_EQ(replay_limit(progress, {false, false, false}, 0), 300 + kReplayWindowBytes);
  EXPECT_EQ(replay_limit(progress, {false, false, false}, 1), 500 + kReplayWindowBytes);
  EXPECT_EQ(replay_limit(progress, {false, true, false}, 0), 500 + kReplayWindowBytes)
      << "node 1 has ended";
  EXPECT_EQ(replay_limit(progress, {false, true, true}, 0), UINT64_MAX) << "no other node replays";
  EXPECT_EQ(replay_limit({at(700)}, {false}, 0), UINT64_MAX);
  // Nothing is known before the first answers.
  EXPECT_EQ(replay_limit({Json::object(), Json::object()}, {false, false}, 0), kReplayWindowBytes);
}

TEST(ReplayLimitTest, TheDistanceGrowsWithTheBytes) {
  const Json node = {{"bytes", 0u}, {"bytes_total", 64 * kReplayWindowBytes}};
  EXPECT_EQ(replay_limit({node, node}, {false, false}, 0), 2 * kReplayWindowBytes);
}

}  // namespace
}  // namespace atolldb::test
