// The steps of a snapshot job: their order, and the end of the job after an error.
#include "coordinator/snapshots/snapshot_job.h"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "tests/engine/log/memory_file_system.h"

namespace atolldb {
namespace {

/// Two nodes that answer all requests, except those of the operation `failing_`, which fail.
class SnapshotJobTest : public testing::Test {
 protected:
  SnapshotJobTest() {
    config_.nodes.assign(2, NodeConfig{});
    config_.cluster.data_dir = "/data";
  }
  static SnapshotTask task_of(uint32_t id) {
    SnapshotTask task;
    task.snapshot = id;
    task.epoch = 90;
    return task;
  }
  Result<Json> answer(ControlOperation operation, const Json& body) {
    const std::lock_guard guard(mutex_);
    if (operation == failing_) return make_error(ExitCode::disk_full, "no room");
    if (operation == ControlOperation::glean_map) mapped_.push_back(body);
    if (operation == ControlOperation::glean_capture) {
      return Json{{"captured", to_binary(encode_captured(captured_.at(captures_++)))}};
    }
    if (operation == ControlOperation::glean_wait) {
      waited_.push_back(body);
      return Json{{"done", ++waits_ % 3 == 0}, {"paused_us", 1000u}};
    }
    if (operation == ControlOperation::glean_end) keeps_.push_back(body.at("keep").get<bool>());
    return Json::object();
  }

  Config config_;
  test::MemoryFileSystem files_;
  ControlOperation failing_ = ControlOperation::unknown;
  std::mutex mutex_;
  uint32_t waits_ = 0;        // number of requests glean.wait; guarded by mutex_
  std::vector<Json> mapped_;  // bodies of the requests glean.map; guarded by mutex_
  size_t captures_ = 0;       // number of requests glean.capture; guarded by mutex_
  std::vector<std::vector<CapturedRange>> captured_;  // answers to glean.capture
  std::vector<Json> waited_;  // bodies of the requests glean.wait; guarded by mutex_
  std::vector<bool> keeps_;   // one per request glean.end; guarded by mutex_
  const NodeCall call_ = [this](uint32_t, ControlOperation operation, const Json& body) {
    return answer(operation, body);
  };
  SnapshotJob job_{config_, files_, call_, make_silent_logger("snapshot")};
};

TEST_F(SnapshotJobTest, AFailedStepEndsTheJobOnAllNodes) {
  failing_ = ControlOperation::glean_prepare;
  EXPECT_EQ(job_.status(), Json::object());
  const auto plan = job_.plan(task_of(4));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(job_.status().at("phase"), "planning");
  const auto prepared = job_.prepare(task_of(4), *plan);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, ExitCode::disk_full);
  EXPECT_EQ(prepared.error().message, "snapshot 4: node 0: no room");
  EXPECT_EQ(keeps_, std::vector<bool>({false, false}));
  EXPECT_EQ(job_.status().at("phase"), "failed");
  EXPECT_EQ(job_.status().at("failure"), "node 0: no room");
}

TEST_F(SnapshotJobTest, ARetryTakesAnotherIdAndForgetsTheFailure) {
  failing_ = ControlOperation::glean_map;
  const auto plan = job_.plan(task_of(4));
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE(job_.prepare(task_of(4), *plan));
  ASSERT_FALSE(job_.map(task_of(4), *plan, {}));
  ASSERT_TRUE(job_.plan(task_of(5)));
  EXPECT_EQ(job_.status().at("snapshot"), 5);
  EXPECT_FALSE(job_.status().contains("failure"));
}

TEST_F(SnapshotJobTest, ACancelledJobEndsWithoutAnAnswerOfTheNodes) {
  const auto plan = job_.plan(task_of(4));
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE(job_.prepare(task_of(4), *plan));
  ASSERT_TRUE(job_.map(task_of(4), *plan, {}));
  job_.cancel();
  EXPECT_FALSE(job_.reduce_and_compose(task_of(4), *plan));
  EXPECT_EQ(keeps_, std::vector<bool>({false, false}));
}

TEST_F(SnapshotJobTest, APacedJobTellsTheNodesTheirLogAndTheGoalEveryTime) {
  config_.nodes.resize(1);
  SnapshotTask task = task_of(4);
  task.log_bytes = {12345};
  double goal = 0;
  task.goal = [&] { return goal += 0.25; };
  const auto plan = job_.plan(task);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE(job_.prepare(task, *plan));
  ASSERT_TRUE(job_.map(task, *plan, {}));
  ASSERT_EQ(mapped_.size(), 1u);
  EXPECT_EQ(mapped_[0].at("log_bytes"), 12345);
  static_cast<void>(job_.reduce_and_compose(task, *plan));
  ASSERT_EQ(waited_.size(), 3u);
  EXPECT_EQ(waited_[0].at("goal_ppm"), 250'000);
  EXPECT_EQ(waited_[1].at("goal_ppm"), 500'000);
  EXPECT_EQ(waited_[2].at("goal_ppm"), 750'000);
}

TEST_F(SnapshotJobTest, MappersOfAllNodesLearnWhatEachNodeHasCaptured) {
  captured_ = {{{3, 100, 200, false}, {5, 7, 0, true}}, {{3, 20, 100, false}}};
  SnapshotTask task = task_of(4);
  task.has_volatile_pages = true;
  task.captures_pages = true;
  const auto plan = job_.plan(task);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE(job_.prepare(task, *plan));
  const auto captured = job_.capture(task, *plan);
  ASSERT_TRUE(captured) << captured.error().message;
  const std::vector<CapturedRange> all = {
      {3, 20, 100, false}, {3, 100, 200, false}, {5, 7, 0, true}};
  EXPECT_EQ(*captured, all);
  ASSERT_TRUE(job_.map(task, *plan, *captured));
  ASSERT_EQ(mapped_.size(), 2u);
  for (const Json& body : mapped_) {
    const auto bytes = find_binary(body, "captured");
    ASSERT_TRUE(bytes);
    EXPECT_EQ(*decode_captured(*bytes), all);
  }
}

TEST_F(SnapshotJobTest, APartitionIsOnTheNodeThatReadsItMost) {
  SnapshotTask task = task_of(4);
  task.has_volatile_pages = true;
  task.base.emplace();
  task.base->id = 3;
  task.base->epoch = 80;
  task.storages.resize(1);
  task.storages[0].id = 7;
  task.storages[0].type = StorageType::mastertree;
  for (const uint32_t most : {0u, 1u}) {
    const NodeCall call = [&](uint32_t node, ControlOperation operation,
                              const Json&) -> Result<Json> {
      EXPECT_EQ(operation, ControlOperation::snapshot_reads);
      return Json{{"count", node == most ? 500u : 10u},
                  {"pages", Json::array({Json::array({7u, 12u}), Json::array({6u, 12u})})}};
    };
    SnapshotJob job(config_, files_, call, make_silent_logger("snapshot"));
    const auto plan = job.plan(task);
    ASSERT_TRUE(plan) << plan.error().message;
    ASSERT_EQ(plan->storages.at(0).partitions.size(), 1u);
    EXPECT_EQ(plan->storages[0].partitions[0].owner.node, most);
  }
  failing_ = ControlOperation::snapshot_reads;
  const auto failed = job_.plan(task);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "snapshot 4: node 0: no room");
}

TEST_F(SnapshotJobTest, OnlyAJobThatOverlapsAnInstallLetsTheNodesHold) {
  for (const bool overlaps : {false, true}) {
    mapped_.clear();
    SnapshotTask task = task_of(overlaps ? 8 : 7);
    task.overlaps_install = overlaps;
    const auto plan = job_.plan(task);
    ASSERT_TRUE(plan && job_.prepare(task, *plan) && job_.map(task, *plan, {}));
    ASSERT_EQ(mapped_.size(), 2u);
    for (const Json& body : mapped_) EXPECT_EQ(body.value("holds", false), overlaps);
    keeps_.clear();
    job_.give_up();
    EXPECT_EQ(keeps_, (std::vector<bool>{false, false}));
    EXPECT_EQ(job_.status().at("phase"), "failed");
  }
}

TEST_F(SnapshotJobTest, NodesThatCaptureTheSamePagesFailTheJob) {
  captured_ = {{{3, 100, 200, false}}, {{3, 199, 300, false}}};
  SnapshotTask task = task_of(4);
  task.has_volatile_pages = true;
  task.captures_pages = true;
  const auto plan = job_.plan(task);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE(job_.prepare(task, *plan));
  EXPECT_FALSE(job_.capture(task, *plan));
  EXPECT_EQ(job_.status().at("phase"), "failed");
}

TEST_F(SnapshotJobTest, ATaskWithoutCapturesAsksNoNodeForThem) {
  const auto plan = job_.plan(task_of(4));
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE(job_.prepare(task_of(4), *plan));
  const auto captured = job_.capture(task_of(4), *plan);
  ASSERT_TRUE(captured);
  EXPECT_TRUE(captured->empty());
  EXPECT_EQ(captures_, 0u);
  ASSERT_TRUE(job_.map(task_of(4), *plan, *captured));
  EXPECT_FALSE(mapped_.at(0).contains("captured"));
}

TEST_F(SnapshotJobTest, AJobWithoutPaceNamesNoGoal) {
  config_.nodes.resize(1);
  const auto plan = job_.plan(task_of(4));
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE(job_.prepare(task_of(4), *plan));
  ASSERT_TRUE(job_.map(task_of(4), *plan, {}));
  static_cast<void>(job_.reduce_and_compose(task_of(4), *plan));
  ASSERT_FALSE(waited_.empty());
  EXPECT_FALSE(waited_[0].contains("goal_ppm"));
  EXPECT_FALSE(mapped_.at(0).contains("log_bytes"));
}

}  // namespace
}  // namespace atolldb
