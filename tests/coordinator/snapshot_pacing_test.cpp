// Which snapshots of a cluster are paced. The nodes of a paced job get their log and its goals.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "engine/array/array.h"
#include "soc/procedure/procedure.h"
#include "tests/coordinator/staged_cluster.h"

namespace atolldb::test {
namespace {

constexpr const char* kPacedStorage = "paced";

Status update_record(ProcedureContext& context) {
  StorageControl* storage = context.storage(kPacedStorage, StorageType::array);
  if (storage == nullptr) return Status::storage_not_found;
  const uint64_t value = 1;
  return Array(*storage).update(context.transaction(), 0, 0, sizeof value, &value);
}
ATOLL_REGISTER_PROCEDURE(kUpdateRecord, "test.update_record", update_record);

/// A cluster of one node. Each snapshot that the test takes holds one commit.
class PacedCluster {
 public:
  explicit PacedCluster(Config config) : cluster_(std::move(config)) {
    cluster_.start();
    const auto created = cluster_.coordinator(
        ControlOperation::storage_create,
        {{"name", kPacedStorage}, {"type", "array"}, {"payload_bytes", 8}, {"record_count", 1}});
    EXPECT_TRUE(created) << created.error().message;
  }

  struct Taken {
    bool has_succeeded = false;
    bool is_paced = false;  // the node got the log volume of the job and a goal
  };
  /// `fails`: the node's part of the job fails.
  Taken take_snapshot(bool fails = false) {
    const auto committed = cluster_.call(0, ControlOperation::procedure_call,
                                         {{"name", "test.update_record"}, {"input", ""}});
    EXPECT_TRUE(committed && committed->at("status") == "ok");
    bool has_log = false;
    bool has_goal = false;
    cluster_.before_call = [&](uint32_t, ControlOperation operation, const Json& body) {
      if (operation == ControlOperation::glean_map) has_log = body.contains("log_bytes");
      if (operation == ControlOperation::glean_wait) has_goal = body.contains("goal_ppm");
    };
    cluster_.fails_call = [&](ControlOperation operation) {
      return fails && operation == ControlOperation::glean_wait;
    };
    const auto taken = cluster_.coordinator(ControlOperation::snapshot_take);
    cluster_.before_call = {};
    cluster_.fails_call = {};
    EXPECT_EQ(has_log, has_goal);
    return {taken.has_value(), has_log && has_goal};
  }

 private:
  StagedCluster cluster_;
};

Config paced_config() { return staged_config(1, std::chrono::milliseconds(2)); }

TEST(SnapshotPacing, TheAttemptAfterAFailedOneIsNotPaced) {
  PacedCluster cluster(paced_config());
  const auto first = cluster.take_snapshot();
  EXPECT_TRUE(first.has_succeeded && first.is_paced);
  const auto failed = cluster.take_snapshot(true);
  EXPECT_TRUE(!failed.has_succeeded && failed.is_paced);
  const auto again = cluster.take_snapshot(true);
  EXPECT_TRUE(!again.has_succeeded && !again.is_paced);
  const auto repeated = cluster.take_snapshot();
  EXPECT_TRUE(repeated.has_succeeded && !repeated.is_paced);
  const auto last = cluster.take_snapshot();
  EXPECT_TRUE(last.has_succeeded && last.is_paced);
}

TEST(SnapshotPacing, JobsOnProcessorsWithoutWorkersAreNotPaced) {
  Config config = paced_config();
  config.nodes[0].cpus = {0};
  config.nodes[0].gleaner_cpus = {1};  // without a processor 1, any is used
  PacedCluster cluster(config);
  const auto taken = cluster.take_snapshot();
  EXPECT_TRUE(taken.has_succeeded && !taken.is_paced);
}

TEST(SnapshotPacing, TheConfigCanSwitchItOff) {
  Config config = paced_config();
  config.gleaner.pacing = false;
  PacedCluster cluster(config);
  const auto taken = cluster.take_snapshot();
  EXPECT_TRUE(taken.has_succeeded && !taken.is_paced);
}

}  // namespace
}  // namespace atolldb::test
