// A staged cluster of one node and one record: its procedure, and its snapshots.
#include "tests/coordinator/one_record_cluster.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "engine/array/array.h"
#include "soc/procedure/procedure.h"
#include "tests/support/procedure_call.h"

namespace atolldb::test {
namespace {

Status put_number(ProcedureContext& context) {
  StorageControl* storage = context.storage(kRecords, StorageType::array);
  if (storage == nullptr) return Status::storage_not_found;
  const uint64_t value = std::stoull(std::string(context.input_text()));
  return Array(*storage).update(context.transaction(), 0, 0, sizeof value, &value);
}
ATOLL_REGISTER_PROCEDURE(kPutNumberProcedure, kPutNumber, put_number);

}  // namespace

Result<Json> create_records(StagedCluster& cluster) {
  return cluster.coordinator(
      ControlOperation::storage_create,
      {{"name", kRecords}, {"type", "array"}, {"payload_bytes", 8}, {"record_count", 1}});
}

Config one_node_config() { return staged_config(1, std::chrono::milliseconds(2)); }

OneRecordCluster::OneRecordCluster(Config config) : cluster_(std::move(config)) {
  cluster_.start();
  const auto created = create_records(cluster_);
  EXPECT_TRUE(created) << created.error().message;
}

OneRecordCluster::Taken OneRecordCluster::take_snapshot(ControlOperation fails_at) {
  const SessionReply committed = call_procedure(cluster_, 0, kPutNumber, "1");
  EXPECT_EQ(committed.status, Status::ok) << committed.message;
  Taken taken;
  bool has_log = false;
  bool has_goal = false;
  cluster_.before_call = [&](uint32_t, ControlOperation operation, const Json& body) {
    if (operation == ControlOperation::glean_capture) taken.has_captured = true;
    if (operation == ControlOperation::glean_map) has_log = body.contains("log_bytes");
    if (operation == ControlOperation::glean_wait) has_goal = body.contains("goal_ppm");
  };
  cluster_.fails_call = [&](ControlOperation operation) { return operation == fails_at; };
  taken.has_succeeded = cluster_.coordinator(ControlOperation::snapshot_take).has_value();
  cluster_.before_call = {};
  cluster_.fails_call = {};
  EXPECT_EQ(has_log, has_goal);
  taken.is_paced = has_log && has_goal;
  return taken;
}

}  // namespace atolldb::test
