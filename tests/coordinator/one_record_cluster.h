// A staged cluster of one node and one record, for tests of the coordinator's snapshot jobs.
#pragma once

#include "tests/coordinator/staged_cluster.h"

namespace atolldb::test {

/// Name of a storage with one record, a number of 8 bytes.
inline constexpr const char* kRecords = "records";
/// Name of a procedure that writes the number in its input to the record.
inline constexpr const char* kPutNumber = "test.put_number";

/// Creates the storage `kRecords`.
Result<Json> create_records(StagedCluster& cluster);

/// The settings of a small cluster of one node, with short epochs.
Config one_node_config();

/// A cluster of one node. Each snapshot that the test takes holds one commit.
class OneRecordCluster {
 public:
  explicit OneRecordCluster(Config config);

  struct Taken {
    bool has_succeeded = false;
    bool is_paced = false;      // the node got the log volume of the job and a goal
    bool has_captured = false;  // the node was asked to capture pages
  };
  /// `fails_at`: the request to the node that fails. `unknown`: no request fails.
  Taken take_snapshot(ControlOperation fails_at = ControlOperation::unknown);

 private:
  StagedCluster cluster_;
};

}  // namespace atolldb::test
