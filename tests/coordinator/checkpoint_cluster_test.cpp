// Checkpoints of a cluster in this process: requests, refusals, failures and restarts.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "coordinator/health.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/checkpoint_plan.h"
#include "engine/log/savepoint.h"
#include "tests/coordinator/checkpoint_rules.h"
#include "tests/coordinator/one_record_cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/procedure_call.h"

namespace atolldb::test {
namespace {

class CheckpointClusterTest : public testing::Test {
 protected:
  explicit CheckpointClusterTest(Config config = checkpoint_config(2))
      : cluster_(std::move(config)) {
    cluster_.start();
    const auto created = create_records(cluster_);
    EXPECT_TRUE(created) << created.error().message;
  }

  std::string call(const char* name, const std::string& input = "",
                   Isolation isolation = Isolation::serializable) {
    return output_of(
        call_procedure(cluster_, 0, name, input, {.worker = 0, .isolation = isolation}));
  }
  void put(uint64_t number) { EXPECT_EQ(call(kPutNumber, std::to_string(number)), ""); }
  std::string get() { return call("test.get_number"); }
  Json take() {
    const auto taken = cluster_.coordinator(ControlOperation::checkpoint_take);
    EXPECT_TRUE(taken) << taken.error().message;
    return taken ? *taken : Json::object();
  }
  Json status() {
    const auto status = cluster_.coordinator(ControlOperation::status);
    EXPECT_TRUE(status) << status.error().message;
    return status ? *status : Json::object();
  }
  Json checkpoints() { return status().value("checkpoints", Json::object()); }
  /// Returns the names of the checkpoint files of all nodes.
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(cluster_.config().cluster.data_dir)) {
      const std::string name = entry.path().filename();
      if (name.ends_with(".atcp") || name.ends_with(".meta")) names.insert(name);
    }
    return names;
  }
  void expect_refused(ControlOperation operation, const Json& body, const std::string& reason) {
    const auto answer = cluster_.coordinator(operation, body);
    ASSERT_FALSE(answer) << to_string(operation);
    EXPECT_EQ(answer.error().code, ExitCode::failed);
    EXPECT_NE(answer.error().message.find(reason), std::string::npos) << answer.error().message;
  }

  StagedCluster cluster_;
};

TEST_F(CheckpointClusterTest, ARequestTakesOneOnlyIfSomethingWasCommittedSinceTheLastOne) {
  put(1);
  const Json first = take();
  EXPECT_EQ(first.at("id"), 1);
  EXPECT_EQ(first.at("records"), 1);
  EXPECT_GE(first.at("end_epoch"), first.at("replay_epoch"));
  EXPECT_EQ(take().at("id"), 1);
  put(2);
  const Json second = take();
  EXPECT_EQ(second.at("id"), 2);
  EXPECT_GT(second.at("replay_epoch"), first.at("end_epoch"));
  const Json shown = checkpoints();
  EXPECT_EQ(shown.at("newest"), 2);
  EXPECT_EQ(shown.at("taken"), 2);
  EXPECT_EQ(shown.at("failed"), 0);
  EXPECT_GT(shown.at("bytes"), 0);
  for (const std::string& file : files()) EXPECT_TRUE(file.starts_with("checkpoint_2")) << file;
}

TEST_F(CheckpointClusterTest, StoragesHaveTheRecordsOfTheNewestCheckpoint) {
  ASSERT_TRUE(cluster_.coordinator(ControlOperation::storage_create,
                                   {{"name", "tree"}, {"type", "mastertree"}}));
  const auto counted = [&](const char* name) {
    const auto storage = cluster_.coordinator(ControlOperation::storage_describe, {{"name", name}});
    EXPECT_TRUE(storage) << storage.error().message;
    return storage ? storage->value("checkpoint", Json()) : Json();
  };
  EXPECT_EQ(counted("tree"), Json()) << "there is no checkpoint";
  put(1);
  take();
  const Json exact = {{"records", 0}, {"records_is_estimate", false}};
  EXPECT_EQ(counted("tree"), exact);
  EXPECT_EQ(counted(kRecords), Json()) << "an array has its own number of records";
  put(2);
  std::atomic<bool> has_put{false};
  cluster_.before_call = [&](uint32_t, ControlOperation operation, const Json&) {
    if (operation == ControlOperation::checkpoint_wait &&
        !has_put.exchange(true, std::memory_order_relaxed))
      put(3);
  };
  take();
  cluster_.before_call = {};
  ASSERT_TRUE(has_put.load(std::memory_order_relaxed));
  EXPECT_EQ(counted("tree"), (Json{{"records", 0}, {"records_is_estimate", true}}));
  // The metadata keep the numbers.
  cluster_.restart();
  cluster_.start();
  EXPECT_EQ(counted("tree"), (Json{{"records", 0}, {"records_is_estimate", true}}));
  put(4);
  take();
  EXPECT_EQ(counted("tree"), exact);
}

TEST_F(CheckpointClusterTest, ARestartHasWhatTheCheckpointAndTheLogAfterItHave) {
  put(1);
  take();
  cluster_.restart();
  cluster_.start();
  EXPECT_EQ(get(), "1");
  put(2);
  cluster_.restart();
  cluster_.start();
  EXPECT_EQ(get(), "2");
  EXPECT_EQ(checkpoints().at("newest"), 1);
  EXPECT_GT(checkpoints().at("replay").at("records"), 0);
  EXPECT_EQ(cluster_.control().recovered_percent.load(std::memory_order_relaxed), 100u)
      << "also after a short recovery, which no beat has seen";
  // Nothing was committed since, but a recovery from the newest checkpoint would replay the log.
  EXPECT_EQ(take().at("id"), 2);
  cluster_.restart();
  cluster_.start();
  EXPECT_EQ(get(), "2");
}

TEST_F(CheckpointClusterTest, IdleRestartsKeepTheCheckpoint) {
  put(1);
  take();
  for (int start = 0; start < 4; ++start) {
    cluster_.restart();
    cluster_.start();
    EXPECT_EQ(get(), "1") << "start " << start;
    EXPECT_EQ(checkpoints().at("newest"), 1);
  }
}

TEST_F(CheckpointClusterTest, AClusterWithoutAnyCommitCanTakeOneAndRestart) {
  EXPECT_EQ(take().at("records"), 0);
  cluster_.restart();
  cluster_.start();
  EXPECT_EQ(get(), "0");
}

TEST_F(CheckpointClusterTest, SnapshotsAreRefusedWithTheReason) {
  const std::string reason = "durability.scheme \"silor\"";
  expect_refused(ControlOperation::snapshot_take, Json::object(), reason);
  expect_refused(ControlOperation::snapshot_pin, {{"name", "mine"}}, reason);
  expect_refused(ControlOperation::snapshot_unpin, {{"pin", "mine"}}, reason);
  expect_refused(ControlOperation::snapshot_remove, {{"id", 1}}, reason);
  put(1);
  EXPECT_EQ(call("test.get_number", "", Isolation::snapshot_read_only), "snapshot_not_found");
  EXPECT_EQ(call("test.get_number", "", Isolation::snapshot), "snapshot_not_found");
  EXPECT_FALSE(status().contains("snapshots"));
}

TEST_F(CheckpointClusterTest, ABackupPinsACheckpointAndItsFilesStay) {
  put(1);
  take();
  const std::string name = std::string(kBackupPinPrefix) + "test";
  const auto pinned = cluster_.coordinator(ControlOperation::snapshot_pin, {{"name", name}});
  ASSERT_TRUE(pinned) << pinned.error().message;
  EXPECT_EQ(pinned->at("id"), 1);
  EXPECT_EQ(checkpoints().at("backup_pins").size(), 1u);
  put(2);
  take();
  EXPECT_TRUE(files().contains("checkpoint_1.meta"));
  ASSERT_TRUE(cluster_.coordinator(ControlOperation::snapshot_unpin, {{"pin", name}}));
  EXPECT_FALSE(files().contains("checkpoint_1.meta"));
  EXPECT_TRUE(files().contains("checkpoint_2.meta"));
}

TEST_F(CheckpointClusterTest, GivesUpPinsOfBackupsWhileALoggerLacksItsNextFile) {
  const auto fails = std::make_shared<std::atomic<bool>>(false);
  cluster_.fails_call = [fails](ControlOperation operation) {
    return operation == ControlOperation::checkpoint_divide &&
           fails->load(std::memory_order_relaxed);
  };
  put(1);
  take();
  const std::string name = std::string(kBackupPinPrefix) + "test";
  ASSERT_TRUE(cluster_.coordinator(ControlOperation::snapshot_pin, {{"name", name}}));
  put(2);
  take();
  EXPECT_TRUE(files().contains("checkpoint_1.meta"));
  // The pin is given up even if no further checkpoint can be made.
  fails->store(true, std::memory_order_relaxed);
  std::atomic<uint64_t>& lacks = cluster_.metrics(0).loggers[0].lacks_next_file;
  lacks.store(1, std::memory_order_release);
  EXPECT_TRUE(eventually([&] { return checkpoints().at("backup_pins").empty(); }));
  EXPECT_TRUE(eventually([&] { return !files().contains("checkpoint_1.meta"); }));
  lacks.store(0, std::memory_order_relaxed);
  EXPECT_TRUE(files().contains("checkpoint_2.meta"));
}

TEST_F(CheckpointClusterTest, AfterAFailureThePreviousOneStaysAndTheStatusSaysWhy) {
  put(1);
  take();
  put(2);
  for (const ControlOperation fails :
       {ControlOperation::checkpoint_divide, ControlOperation::checkpoint_begin,
        ControlOperation::checkpoint_wait}) {
    cluster_.fails_call = [fails](ControlOperation operation) { return operation == fails; };
    const auto taken = cluster_.coordinator(ControlOperation::checkpoint_take);
    ASSERT_FALSE(taken) << to_string(fails);
    EXPECT_NE(taken.error().message.find("planted"), std::string::npos) << taken.error().message;
    EXPECT_EQ(checkpoints().at("newest"), 1);
    for (const std::string& file : files()) EXPECT_TRUE(file.starts_with("checkpoint_1")) << file;
    const auto problems = find_problems(status(), "");
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_NE(problems[0].what.find("planted"), std::string::npos) << problems[0].what;
  }
  cluster_.fails_call = {};
  EXPECT_EQ(take().at("id"), 5) << "no id is used twice";
  EXPECT_EQ(checkpoints().at("failed"), 3);
  EXPECT_EQ(find_problems(status(), "").size(), 0u);
  cluster_.restart();
  cluster_.start();
  EXPECT_EQ(get(), "2");
}

TEST_F(CheckpointClusterTest, ALongListOfIncarnationsMakesACheckpointDue) {
  for (uint64_t start = 1; start <= kMaxListedIncarnations; ++start) {
    put(start);
    EXPECT_EQ(checkpoints().at("newest"), 0) << "start " << start;
    cluster_.restart();
    cluster_.start();
    ASSERT_EQ(get(), std::to_string(start));
  }
  EXPECT_TRUE(eventually([&] { return checkpoints().at("newest") == 1; }));
  EXPECT_EQ(get(), std::to_string(kMaxListedIncarnations));
}

/// Settings other than the default ones.
class ConfiguredCheckpointTest : public CheckpointClusterTest {
 protected:
  ConfiguredCheckpointTest() : CheckpointClusterTest(configured()) {}

  static Config configured() {
    Config config = checkpoint_config(1);
    config.durability.checkpoint_sync_volume = 0;
    config.durability.checkpoint_pause = std::chrono::milliseconds(3);
    config.durability.replay_order = ReplayOrder::oldest_first;
    return config;
  }
};

TEST_F(ConfiguredCheckpointTest, TheNodesGetTheSyncDistanceThePauseAndTheOrder) {
  EXPECT_EQ(Config().durability.checkpoint_sync_volume, kCheckpointSyncBytes);
  Json begun;
  std::vector<ReplayOrder> orders;
  cluster_.before_call = [&](uint32_t, ControlOperation operation, const Json& body) {
    if (operation == ControlOperation::checkpoint_begin) {
      begun = {body.at("sync_bytes"), body.at("pause_us"), body.at("pause_bytes")};
    }
    if (operation != ControlOperation::replay_begin) return;
    const auto bytes = find_binary(body, "plan");
    ASSERT_TRUE(bytes);
    const auto plan = decode_replay_plan(*bytes);
    ASSERT_TRUE(plan) << plan.error().message;
    orders.push_back(plan->order);
  };
  put(1);
  take();
  put(2);
  cluster_.restart();
  cluster_.start();
  EXPECT_EQ(get(), "2");
  EXPECT_EQ(begun, Json::array({0, 3000, kCheckpointPauseBytes}));
  EXPECT_EQ(orders, std::vector{ReplayOrder::oldest_first});
  cluster_.before_call = {};
}

TEST(CheckpointCluster, TheSettledEpochIsHeldUntilAllNodesHaveReplayed) {
  EXPECT_EQ(the_settled_epoch_is_held_until_all_nodes_have_replayed(), "");
}

TEST(CheckpointCluster, NodesExchangeWhenAllHaveReadTheirFiles) {
  EXPECT_EQ(nodes_exchange_when_all_have_read_their_files(), "");
}

/// How far a recovery is, as the status page shows it at each request of the coordinator.
class ShownRecovery {
 public:
  explicit ShownRecovery(uint32_t nodes) : cluster_(checkpoint_config(nodes)) {
    cluster_.start();
    EXPECT_TRUE(create_records(cluster_));
    EXPECT_EQ(output_of(call_procedure(cluster_, 0, kPutNumber, "7", {.worker = 0})), "");
    cluster_.restart();
    cluster_.before_call = [this](uint32_t, ControlOperation operation, const Json&) {
      const std::lock_guard guard(mutex_);
      const auto status = cluster_.coordinator(ControlOperation::status);
      const auto problems = status ? find_problems(*status, "") : std::vector<Problem>();
      shown_[operation] = problems.empty() ? "nothing" : problems.front().what;
      recovery_[operation] = status ? status->value("recovery", Json()) : Json();
    };
    cluster_.start();
    cluster_.before_call = {};
  }
  /// Returns what was shown at the last such request, and the member "recovery" of the status.
  std::string text(ControlOperation operation) { return shown_[operation]; }
  Json recovery(ControlOperation operation) { return recovery_[operation]; }

 private:
  StagedCluster cluster_;
  std::mutex mutex_;
  std::map<ControlOperation, std::string> shown_;  // guarded by mutex_
  std::map<ControlOperation, Json> recovery_;      // guarded by mutex_
};

TEST(CheckpointCluster, ARecoveryShowsItsStepsAndNoPercentageAfterTheFiles) {
  for (const uint32_t nodes : {1u, 2u}) {
    ShownRecovery shown(nodes);
    const std::string files = shown.text(ControlOperation::replay_begin);
    EXPECT_NE(files.find("recovers: 0 % of "), std::string::npos) << files;
    const std::string exchange = shown.text(ControlOperation::replay_exchange);
    const std::string step =
        nodes == 1 ? "; now applying updates" : "; now exchanging and applying updates";
    EXPECT_TRUE(exchange.ends_with(" of checkpoint and log are read" + step)) << exchange;
    EXPECT_EQ(exchange.find('%'), std::string::npos) << exchange;
    EXPECT_EQ(shown.recovery(ControlOperation::replay_exchange).at("percent"), Json());
    EXPECT_EQ(shown.recovery(ControlOperation::replay_exchange).at("percent_read"), 100);
    const std::string clean = shown.text(ControlOperation::replay_clean);
    EXPECT_TRUE(clean.ends_with("; now removing tombstones")) << clean;
    EXPECT_EQ(clean.find('%'), std::string::npos) << clean;
  }
}

TEST(CheckpointCluster, WithSnapshotsARequestForACheckpointIsRefused) {
  StagedCluster cluster(1);
  cluster.start();
  const auto taken = cluster.coordinator(ControlOperation::checkpoint_take);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ExitCode::failed);
  EXPECT_NE(taken.error().message.find("durability.scheme \"gleaned\""), std::string::npos)
      << taken.error().message;
}

TEST(CheckpointRules, WaitForDropsThatAreNotLogged) {
  EXPECT_EQ(checkpoints_wait_for_drops_that_are_not_logged(), "");
}

}  // namespace
}  // namespace atolldb::test
