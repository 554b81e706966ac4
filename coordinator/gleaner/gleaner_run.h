// One run of the gleaner over all nodes: it turns the log after a snapshot into the next snapshot
// (R36, R37). The caller stores the savepoint afterwards; before that, the snapshot does not exist.
// Source: [FOEDUS15] section 7.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "coordinator/gleaner/ask_nodes.h"
#include "coordinator/gleaner/make_plan.h"
#include "engine/gleaner/composed.h"
#include "engine/install/install.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/file/file.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// The result of one node's part of a run.
struct NodePart {
  std::vector<ComposedPartition> partitions;
  SnapshotFilePlace file;
  Json unreadable = Json::array();  // ranges of the base that could not be read (R56)
};

class GleanerRun {
 public:
  /// REQUIRES: all arguments outlive it.
  GleanerRun(const Config& config, FileSystem& file_system, const NodeCall& call_node,
             Logger logger)
      : config_(config),
        file_system_(file_system),
        call_node_(call_node),
        logger_(std::move(logger)) {}

  /// Blocks until files and metadata are durable. After an error no file of the run is left, unless
  /// a removal failed; a retry takes another id. Thread: one.
  Result<SnapshotMetadata> run(const GleanTask& task);
  /// Tells the nodes to keep the snapshot's files and to end the run. The caller calls it after it
  /// stored the savepoint. It also calls it if that failed, because the savepoint may name the
  /// snapshot or not.
  void keep(uint32_t snapshot);
  /// Returns whether some node still has less than this percentage of its pages free after the
  /// dropped pages became free. May block for up to a second.
  using StaysShort = std::function<bool(uint32_t free_percent)>;
  /// Sets pointers of the running cluster to the snapshot. Drops volatile pages that it makes
  /// unnecessary where the pool is low. Hot pages are dropped in a second pass, if the others were
  /// too few. After an error pointers may refer to this snapshot or still to an older one.
  /// REQUIRES: its files can be read on all nodes, and it is the latest run's. Thread: that of
  /// `run`.
  Result<InstallReport> install(const SnapshotMetadata& snapshot, const StaysShort& stays_short);
  /// Makes the run under way and all later ones fail soon. Thread: any.
  void cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }

  /// Returns {} if no run was begun, else an object of:
  ///  * "snapshot", "phase", and "failure" for a run that failed;
  ///  * "unreadable": ranges of the base that the last complete run could not read;
  ///  * "progress": the sums of the nodes' progress.
  /// Thread: any.
  Json status() const;
  /// Clears the unreadable ranges: a salvage has given them up and reported them. Thread: any.
  void forget_unreadable();

 private:
  Result<void> align(const GleanTask& task, GleanPlan& plan);
  void drop_hot(const SnapshotMetadata& snapshot, uint32_t free_percent, InstallReport& report);
  Result<InstallReport> install_pass(const SnapshotMetadata& snapshot, const DropLimits& limits);
  Result<InstallReport> install_on(uint32_t node, const Json& body);
  Result<SnapshotMetadata> run_planned(const GleanTask& task, const GleanPlan& plan);
  Result<std::vector<NodePart>> glean_on_nodes(const GleanTask& task, const GleanPlan& plan);
  Result<NodePart> await(uint32_t node, uint32_t snapshot);
  Result<SnapshotMetadata> combine(const GleanTask& task, const GleanPlan& plan,
                                   std::vector<NodePart> gleaned);
  void discard(uint32_t snapshot);
  void set_phase(uint32_t snapshot, const char* phase);
  void note_failure(const Error& error);
  void note_unreadable(const std::vector<NodePart>& parts);

  const Config& config_;
  FileSystem& file_system_;
  const NodeCall& call_node_;
  Logger logger_;
  std::atomic<bool> is_cancelled_{false};
  mutable std::mutex mutex_;
  Json status_ = Json::object();  // guarded by mutex_, as below
  Json unreadable_ = Json::array();
  std::vector<Json> progress_;  // by node
};

/// Opens these files on all nodes, and closes all other files there. `kept`: files of older
/// snapshots, which stay closed but are scrubbed, too.
Result<void> open_on_nodes(const Config& config, const NodeCall& call_node,
                           const std::vector<SnapshotFilePlace>& places,
                           const std::vector<SnapshotFilePlace>& kept);

/// Lets transactions of all nodes begin with the snapshot (R18). REQUIRES: open_on_nodes was called
/// for its files.
Result<void> publish_on_nodes(const Config& config, const NodeCall& call_node,
                              const SnapshotMetadata& snapshot);

/// Withdraws all snapshots that are not in `keep`. When it returns, no transaction can begin with
/// them. Running transactions still name them in their slots (snapshots_in_use).
Result<void> withdraw_on_nodes(const Config& config, const NodeCall& call_node,
                               const std::set<uint32_t>& keep);

}  // namespace atolldb
