// The progress of a recovery from a checkpoint, and the pace of its nodes.
#include "coordinator/checkpoints/checkpoint_recovery.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "coordinator/checkpoints/checkpoint_job.h"
#include "tests/coordinator/checkpoint_rules.h"
#include "tests/coordinator/two_nodes.h"

namespace atolldb::test {
namespace {

using std::chrono::milliseconds;

TEST(ReplayProgressTest, IsTheShareOfTheBytesThatWereRead) {
  const auto percent = [](uint64_t bytes, uint64_t total) {
    return ReplayProgress{bytes, total}.percent(RecoveryStep::files);
  };
  EXPECT_EQ(percent(0, 0), 0u) << "no node has answered yet";
  EXPECT_EQ(percent(0, 10), 0u);
  EXPECT_EQ(percent(985, 1000), 98u);
}

TEST(ReplayProgressTest, Is100PercentOnlyWhenAllNodesHaveReadTheirFiles) {
  for (const uint64_t bytes : {999u, 1000u, 1001u}) {
    EXPECT_EQ((ReplayProgress{bytes, 1000}.percent(RecoveryStep::files)), 99u) << bytes;
    EXPECT_EQ((ReplayProgress{bytes, 1000}.percent(RecoveryStep::exchange)), 100u) << bytes;
  }
  EXPECT_EQ((ReplayProgress{0, 0}.percent(RecoveryStep::clean)), 100u) << "there were no files";
}

TEST(ReplayProgressTest, ASingleNodeExchangesNothing) {
  EXPECT_EQ(text_of(RecoveryStep::exchange, 1), "applying updates");
  EXPECT_EQ(text_of(RecoveryStep::exchange, 2), "exchanging and applying updates");
  EXPECT_EQ(text_of(RecoveryStep::files, 1), text_of(RecoveryStep::files, 2));
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
  EXPECT_EQ(replay_progress_of(sum).percent(RecoveryStep::files), 50u);
  EXPECT_EQ(replay_progress_of(Json::object()).percent(RecoveryStep::files), 0u);
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

TEST(CheckpointRecoveryTest, EachNodeTakesWhatTheOthersHaveGivenToIt) {
  TwoNodes nodes;
  const auto recovered = nodes.recover("all");
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(nodes.taken,
            (std::map<uint32_t, std::vector<std::string>>{{0, {"of node 1"}}, {1, {"of node 0"}}}));
  EXPECT_EQ(nodes.progress, (Json{{"bytes", 8u}}));
}

TEST(CheckpointFilesTest, LetAllWorkersReadByDefault) {
  struct Case {
    uint32_t workers;
    uint32_t threads;
    uint32_t key;
    uint32_t files;
  };
  const Case cases[] = {
      {1, 1, 0, 4},  {4, 1, 0, 4},    {5, 1, 0, 5},    {30, 1, 0, 30}, {30, 4, 0, 8},
      {32, 4, 0, 8}, {250, 1, 0, 64}, {250, 5, 0, 50}, {30, 1, 1, 1},  {30, 4, 64, 64},
  };
  for (const Case& each : cases) {
    Config config;
    config.nodes.resize(2);
    config.nodes[1].workers = each.workers;
    config.durability.checkpoint_threads = each.threads;
    config.durability.checkpoint_files = each.key;
    EXPECT_EQ(files_of_each_thread(config, 1), each.files)
        << each.workers << " workers, " << each.threads << " threads, key " << each.key;
  }
}

TEST(CheckpointRecoveryTest, FailsIfTheNodesDivideTheFilesDifferently) {
  EXPECT_EQ(different_divisions_of_the_files_are_refused(), "");
}

TEST(CheckpointRecoveryTest, FailsIfAFileIsGivenToAMissingNode) {
  TwoNodes nodes;
  nodes.gives_to_missing_node = true;
  const auto recovered = nodes.recover("all");
  ASSERT_FALSE(recovered);
  EXPECT_NE(recovered.error().message.find("of node 1: was given to node 2"), std::string::npos)
      << recovered.error().message;
  EXPECT_TRUE(nodes.taken.empty());
}

}  // namespace
}  // namespace atolldb::test
