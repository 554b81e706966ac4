// Installation of a snapshot on all nodes at once, each with its share of the storages.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/snapshots/snapshot_job.h"
#include "tests/engine/log/memory_file_system.h"

namespace atolldb {
namespace {

constexpr uint32_t kFreePercent = 45;  // of the first pass

SnapshotStorage stored(uint32_t id, uint64_t records) {
  SnapshotStorage storage;
  storage.id = id;
  storage.records = records;
  return storage;
}

TEST(DivideStoragesTest, ThoseWithMostRecordsFirstInTurn) {
  const auto shares =
      divide_storages({stored(1, 10), stored(2, 500), stored(3, 10), stored(4, 70)}, 3);
  ASSERT_EQ(shares.size(), 3u);
  ASSERT_EQ(shares[0].size(), 2u);
  EXPECT_EQ(shares[0][0].id, 2u);
  EXPECT_EQ(shares[0][1].id, 3u);
  EXPECT_EQ(shares[1].at(0).id, 4u);
  EXPECT_EQ(shares[2].at(0).id, 1u);
}

bool never_low(uint32_t) { return false; }
double none_idle() { return 0; }

TEST(PercentToFree, GrowsWithThePagesThatTransactionsUsedDuringTheJob) {
  EXPECT_EQ(percent_to_free(40, 0), 40u);
  EXPECT_EQ(percent_to_free(40, -0.5), 40u) << "pages became free";
  EXPECT_EQ(percent_to_free(40, 0.2), 70u);
  EXPECT_EQ(percent_to_free(40, 0.34), 90u) << "at most";
  EXPECT_EQ(percent_to_free(40, 1), 90u);
  EXPECT_EQ(percent_to_free(95, 1), 95u) << "never less than the config says";
}

TEST(NextInstallersTest, OneMoreForEachIdleProcessorUpToTheLimit) {
  EXPECT_EQ(next_installers(1, 0, 4), 1u);
  EXPECT_EQ(next_installers(1, 0.9, 4), 1u);
  EXPECT_EQ(next_installers(1, 1.9, 4), 2u);
  EXPECT_EQ(next_installers(2, 1.0, 4), 3u);
  EXPECT_EQ(next_installers(2, 200, 4), 4u);
  EXPECT_EQ(next_installers(1, 200, 1), 1u);
  EXPECT_EQ(next_installers(4, 0.6, 4), 4u);
  EXPECT_EQ(next_installers(4, 0.4, 4), 3u) << "other threads need the processors";
}

/// Two nodes whose answers the test determines.
class SnapshotInstallTest : public testing::Test {
 protected:
  SnapshotInstallTest() {
    config_.nodes.assign(2, NodeConfig{});
    snapshot_.id = 9;
    snapshot_.epoch = 77;
    for (uint32_t id = 1; id <= 3; ++id) snapshot_.storages.push_back(stored(id, id));
  }

  Config config_;
  test::MemoryFileSystem files_;
  SnapshotMetadata snapshot_;
  std::mutex mutex_;
  std::map<uint32_t, uint32_t> calls_;  // number of calls by node; guarded by mutex_
  std::set<uint32_t> storages_;         // guarded by mutex_
};

TEST_F(SnapshotInstallTest, AsksUntilAllAreDoneAndSumsUp) {
  const NodeCall call = [this](uint32_t node, ControlOperation operation, const Json& body) {
    EXPECT_EQ(operation, ControlOperation::snapshot_install);
    EXPECT_EQ(body.at("snapshot"), 9);
    EXPECT_EQ(body.at("epoch"), 77);
    const std::lock_guard guard(mutex_);
    for (const Json& storage : body.at("storages"))
      storages_.insert(storage.at("id").get<uint32_t>());
    const bool is_done = ++calls_[node] == 3;
    Json answer = {{"done", is_done}, {"installed", 10 * calls_[node]}, {"dropped", node}};
    if (node == 1) answer["oldest_left"] = 4;
    return Result<Json>(answer);
  };
  SnapshotJob job(config_, files_, call, make_silent_logger("install"));
  const auto report = job.install(snapshot_, kFreePercent, never_low, none_idle);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->installed, 60u);
  EXPECT_EQ(report->dropped, 1u);
  EXPECT_EQ(report->oldest_left, 4u);
  EXPECT_EQ(storages_, (std::set<uint32_t>{1, 2, 3}));
  EXPECT_EQ(job.status().at("phase"), "done");
  EXPECT_EQ(job.status().at("progress").at("installed"), 60);
  EXPECT_FALSE(job.status().at("progress").contains("oldest_left"));
}

/// R85.
TEST_F(SnapshotInstallTest, TellsTheNodesWherePartitionsOfTheNextJobBegin) {
  SnapshotPlan next;
  next.base = snapshot_.id;
  next.base_epoch = snapshot_.epoch;
  PlannedStorage tree;
  tree.id = 2;
  tree.type = StorageType::mastertree;
  tree.partitions = {{"", {0, 0}}, {std::string("\0\0\0\0\0\0\1\2", 8), {1, 0}}};
  next.storages.push_back(tree);
  std::map<uint32_t, Json> bounds;
  std::optional<SnapshotJob> job;
  const NodeCall call = [&](uint32_t, ControlOperation operation, const Json& body) {
    if (operation != ControlOperation::snapshot_install) return Result<Json>(Json::object());
    const std::lock_guard guard(mutex_);
    for (const Json& storage : body.at("storages")) {
      bounds[storage.at("id").get<uint32_t>()] = storage.value("next_bounds", Json());
    }
    const Json status = job->status();
    EXPECT_EQ(status.at("phase"), "planning") << "the phase of the next job";
    EXPECT_EQ(status.at("snapshot"), 10);
    EXPECT_EQ(status.at("installing"), 9);
    return Result<Json>(Json{{"done", true}, {"installed", 1}});
  };
  config_.cluster.data_dir = "/data";
  job.emplace(config_, files_, call, make_silent_logger("install"));
  SnapshotTask task;
  task.snapshot = 10;
  ASSERT_TRUE(job->plan(task));
  ASSERT_TRUE(job->install(snapshot_, kFreePercent, never_low, none_idle, &next));
  EXPECT_EQ(bounds, (std::map<uint32_t, Json>{{1, Json()}, {2, Json{0x102}}, {3, Json()}}));
  EXPECT_EQ(job->status().at("phase"), "planning");
  EXPECT_FALSE(job->status().contains("installing"));
  EXPECT_FALSE(job->status().at("progress").contains("installed"));
}

TEST_F(SnapshotInstallTest, GoesOnAfterALaterJobHasFailed) {
  const NodeCall call = [&](uint32_t, ControlOperation operation, const Json&) {
    if (operation == ControlOperation::glean_prepare) {
      return Result<Json>(make_error(ExitCode::failed, "planted"));
    }
    return Result<Json>(Json{{"done", true}, {"installed", 1}});
  };
  config_.cluster.data_dir = "/data";
  SnapshotJob job(config_, files_, call, make_silent_logger("install"));
  SnapshotTask task;
  task.snapshot = 10;
  const auto plan = job.plan(task);
  ASSERT_TRUE(plan);
  ASSERT_FALSE(job.prepare(task, *plan));
  const auto report = job.install(snapshot_, kFreePercent, never_low, none_idle);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->installed, 2u);
  EXPECT_EQ(job.status().at("phase"), "failed");
}

/// Each node reports 10 dropped pages for each pass, and keeps hot pages if the pass spares them.
class HotPagesTest : public SnapshotInstallTest {
 protected:
  HotPagesTest() {
    config_.gleaner.pool_low_water = 20;
    config_.gleaner.pool_high_water = 45;
  }
  Result<Json> answer(uint32_t node, const Json& body) {
    const bool is_spared = body.at("spares_hot").get<bool>();
    const std::lock_guard guard(mutex_);
    ++(is_spared ? sparing_ : sparing_none_)[body.at("free_percent").get<uint32_t>()];
    if (!is_spared && fails_) return make_error(ExitCode::failed, "a page is unreadable");
    return Json{{"done", true},
                {"installed", 7},
                {"dropped", 10},
                {"kept", is_spared ? 5 : 1},
                {"kept_hot", is_spared ? hot_ : 0},
                {"oldest_left", is_spared ? 3 : 4 + node}};
  }
  Result<InstallReport> install(bool is_short) {
    const NodeCall call = [this](uint32_t node, ControlOperation, const Json& body) {
      return answer(node, body);
    };
    SnapshotJob job(config_, files_, call, make_silent_logger("install"));
    auto report = job.install(
        snapshot_, kFreePercent,
        [&](uint32_t percent) {
          asked_.push_back(percent);
          return is_short;
        },
        none_idle);
    EXPECT_EQ(job.status().at("phase"), "done");
    return report;
  }

  using Calls = std::map<uint32_t, int>;  // number of calls by requested percentage of free pages
  Calls sparing_;
  Calls sparing_none_;
  std::vector<uint32_t> asked_;
  int hot_ = 5;
  bool fails_ = false;
};

TEST_F(HotPagesTest, GoInASecondPassOfAllNodesIfTheOthersWereTooFew) {
  const auto report = install(true);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(sparing_, (Calls{{45, 2}}));
  EXPECT_EQ(sparing_none_, (Calls{{33, 2}})) << "the middle, rounded up";
  EXPECT_EQ(asked_, std::vector<uint32_t>{33});
  EXPECT_EQ(report->installed, 14u) << "of one pass";
  EXPECT_EQ(report->dropped, 40u);
  EXPECT_EQ(report->dropped_hot, 20u);
  EXPECT_EQ(report->kept_hot, 0u) << "20 went, all of them may have been hot";
  EXPECT_EQ(report->kept, 2u);
  EXPECT_EQ(report->oldest_left, 4u) << "the second pass looks at all pointers again";
}

TEST_F(HotPagesTest, StayIfTheOthersWereEnough) {
  const auto report = install(false);
  ASSERT_TRUE(report);
  EXPECT_TRUE(sparing_none_.empty());
  EXPECT_EQ(report->dropped_hot, 0u);
}

TEST_F(HotPagesTest, NeedNoSecondPassIfThereAreNone) {
  hot_ = 0;
  EXPECT_TRUE(install(true));
  EXPECT_TRUE(sparing_none_.empty());
  EXPECT_TRUE(asked_.empty());
}

TEST_F(HotPagesTest, AreNotSparedIfTheConfigSaysSo) {
  config_.gleaner.keep_hot_pages = false;
  EXPECT_TRUE(install(true));
  EXPECT_TRUE(sparing_.empty());
  EXPECT_EQ(sparing_none_, (Calls{{45, 2}}));
}

TEST_F(HotPagesTest, ASecondPassThatFailsLeavesTheFirstOnesReport) {
  fails_ = true;
  const auto report = install(true);
  ASSERT_TRUE(report) << "all pointers refer to the snapshot";
  EXPECT_EQ(report->dropped, 20u);
  EXPECT_EQ(report->oldest_left, 3u);
}

/// The storages have delta trees. The test determines which of them may be drained.
class DrainTest : public SnapshotInstallTest {
 protected:
  using Ids = std::set<uint32_t>;

  DrainTest() { config_.cluster.data_dir = "/data"; }
  Result<Json> answer(uint32_t node, const Json& body) {
    Ids asked;
    for (const Json& storage : body.at("storages")) asked.insert(storage.at("id").get<uint32_t>());
    const bool drains = body.at("drains").get<bool>();
    const std::lock_guard guard(mutex_);
    passes_[node].push_back(drains ? "drain" : body.at("spares_hot") == true ? "install" : "hot");
    if (drains) {
      drained_[node] = asked;
      if (node == failing_) return make_error(ExitCode::failed, "a page is unreadable");
      return Json{{"done", true}, {"drained", 10}, {"reclaimed", 1}};
    }
    Json answer = {{"done", true}, {"kept_hot", hot_}};
    for (const char* name : {"drainable", "incomplete", "changed"}) answer[name] = Json::array();
    for (const uint32_t id : asked) {
      answer[busy_.contains(id) ? "incomplete" : "drainable"].push_back(id);
      answer["changed"].push_back(Json::array({id, 100 * id}));
    }
    return answer;
  }
  /// Runs the job of another snapshot and installs it.
  Result<InstallReport> install() {
    SnapshotTask task;
    task.snapshot = ++snapshot_.id;
    task.epoch = ++snapshot_.epoch;
    const auto plan = job_.plan(task);
    EXPECT_TRUE(plan && job_.prepare(task, *plan) && job_.map(task, *plan, {}));
    auto parts = job_.reduce_and_compose(task, *plan);
    EXPECT_TRUE(parts) << parts.error().message;
    const auto made = job_.combine(task, *plan, std::move(*parts));
    EXPECT_TRUE(made && job_.write_metadata(*made));
    return job_.install(snapshot_, kFreePercent, [](uint32_t) { return true; }, none_idle);
  }

  static constexpr uint32_t kNone = 99;
  Ids busy_;                  // storages with pointers that cannot be set
  uint32_t failing_ = kNone;  // node whose drains fail
  int hot_ = 0;
  std::map<uint32_t, std::vector<std::string>> passes_;  // by node; guarded by mutex_
  std::map<uint32_t, Ids> drained_;  // storages of the latest drain, by node; guarded by mutex_
  const NodeCall call_ = [this](uint32_t node, ControlOperation operation, const Json& body) {
    if (operation == ControlOperation::snapshot_install) return answer(node, body);
    return Result<Json>(Json{{"done", true}, {"partitions", to_binary(encode_composed({}))}});
  };
  SnapshotJob job_{config_, files_, call_, make_silent_logger("install")};
};

TEST_F(DrainTest, FollowsTheInstallOnAllNodesAndLeavesIncompleteStoragesOut) {
  busy_ = {2};
  const auto report = install();
  ASSERT_TRUE(report) << report.error().message;
  for (const uint32_t node : {0u, 1u}) {
    EXPECT_EQ(passes_[node], (std::vector<std::string>{"install", "drain"}));
    EXPECT_EQ(drained_[node], (Ids{1, 3})) << "each node drains its part of each storage";
  }
  EXPECT_EQ(report->drained, 20u);
  EXPECT_EQ(report->reclaimed, 2u);
}

TEST_F(DrainTest, IsNotAskedIfNoStorageIsComplete) {
  busy_ = {1, 2, 3};
  ASSERT_TRUE(install());
  EXPECT_EQ(passes_[0], (std::vector<std::string>{"install"}));
}

TEST_F(DrainTest, IsFinishedBeforeTheNextInstallIfItHasFailed) {
  failing_ = 1;
  ASSERT_TRUE(install()) << "all pointers refer to the snapshot";
  EXPECT_FALSE(install()) << "the drain may still run on node 1";
  EXPECT_EQ(job_.status().at("phase"), "not installed");
  EXPECT_EQ(passes_[1], (std::vector<std::string>{"install", "drain", "drain"}));
  failing_ = kNone;
  ASSERT_TRUE(install());
  EXPECT_EQ(passes_[1],
            (std::vector<std::string>{"install", "drain", "drain", "drain", "install", "drain"}));
  ASSERT_TRUE(install());
  EXPECT_EQ(passes_[1].size(), 8u) << "the open drain is done once";
}

TEST_F(DrainTest, AStorageThatIsIncompleteThreeTimesInTurnIsStuck) {
  busy_ = {2};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(install());
  EXPECT_FALSE(job_.is_stuck(2));
  ASSERT_TRUE(install());
  EXPECT_TRUE(job_.is_stuck(2));
  EXPECT_FALSE(job_.is_stuck(1));
  busy_.clear();
  ASSERT_TRUE(install());
  EXPECT_FALSE(job_.is_stuck(2)) << "one complete install is enough";
  busy_ = {2};
  ASSERT_TRUE(install());
  EXPECT_FALSE(job_.is_stuck(2)) << "the count begins again";
}

TEST_F(DrainTest, ASecondPassCountsNoChangesAgain) {
  hot_ = 5;
  ASSERT_TRUE(install());
  EXPECT_EQ(passes_[0], (std::vector<std::string>{"install", "drain", "hot"}));
  EXPECT_EQ(job_.changed_bytes(), (std::map<uint32_t, uint64_t>{{1, 100}, {2, 200}, {3, 300}}));
  ASSERT_TRUE(install());
  EXPECT_EQ(job_.changed_bytes().at(3), 300u) << "of the latest install";
}

TEST_F(SnapshotInstallTest, WaitsForTheOthersWhenOneFailsAndReportsIt) {
  const NodeCall call = [this](uint32_t node, ControlOperation, const Json&) -> Result<Json> {
    const std::lock_guard guard(mutex_);
    if (node == 0) return make_error(ExitCode::failed, "a page is unreadable");
    return Json{{"done", ++calls_[node] == 5}};
  };
  SnapshotJob job(config_, files_, call, make_silent_logger("install"));
  const auto report = job.install(snapshot_, kFreePercent, never_low, none_idle);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("node 0: a page is unreadable"), std::string::npos);
  EXPECT_EQ(calls_[1], 5u);
  EXPECT_EQ(job.status().at("phase"), "not installed");
}

TEST_F(SnapshotInstallTest, PermitsThreadsOnTheIdleProcessorsOfEachNode) {
  config_.nodes[0].installers = 3;
  config_.nodes[1].installers = 1;
  std::map<uint32_t, std::vector<uint32_t>> threads;
  const NodeCall call = [&](uint32_t node, ControlOperation, const Json& body) -> Result<Json> {
    const std::lock_guard guard(mutex_);
    threads[node].push_back(body.at("threads").get<uint32_t>());
    return Json{{"done", ++calls_[node] == 3}};
  };
  SnapshotJob job(config_, files_, call, make_silent_logger("install"));
  ASSERT_TRUE(job.install(snapshot_, kFreePercent, never_low, [] { return 2.5; }));
  EXPECT_EQ(threads[0], (std::vector<uint32_t>{2, 3, 3})) << "half of the idle ones for each node";
  EXPECT_EQ(threads[1], (std::vector<uint32_t>{1, 1, 1}));
}

TEST_F(SnapshotInstallTest, EndsWhenItIsCancelled) {
  SnapshotJob* running = nullptr;
  const NodeCall call = [&](uint32_t, ControlOperation, const Json&) -> Result<Json> {
    running->cancel();
    return Json{{"done", false}};
  };
  SnapshotJob job(config_, files_, call, make_silent_logger("install"));
  running = &job;
  EXPECT_FALSE(job.install(snapshot_, kFreePercent, never_low, none_idle));
}

}  // namespace
}  // namespace atolldb
