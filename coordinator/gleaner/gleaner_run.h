// One run of the gleaner over all nodes: turns the log behind a snapshot into the next one (design:
// stratified snapshots; foedus.txt section 7; rules R36, R37). The caller stores the savepoint:
// before that, the snapshot does not exist.
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
#include "engine/snapshot/install.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/file/file.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// What a node has made of its part.
struct NodePart {
  std::vector<ComposedPartition> partitions;
  SnapshotFilePlace file;
  Json unreadable = Json::array();  // ranges that could not be read of the base (R56)
};

class GleanerRun {
 public:
  /// All of these outlive it.
  GleanerRun(const Config& config, FileSystem& file_system, const NodeCall& call_node,
             Logger logger)
      : config_(config),
        file_system_(file_system),
        call_node_(call_node),
        logger_(std::move(logger)) {}

  /// Blocks until files and metadata are durable. An error: no file of it is left, if they could be
  /// removed; a retry takes another id. One thread.
  Result<SnapshotMetadata> run(const GleanTask& task);
  /// The savepoint names it now: the nodes forget the run. Or it does not, since storing it failed:
  /// then it must be kept, too, as nobody knows what the savepoint says.
  void keep(uint32_t snapshot);
  /// Whether some node has less than this percentage of its pages free, and still has when those
  /// that were dropped have come back. May block for a moment.
  using StaysShort = std::function<bool(uint32_t free_percent)>;
  /// Lets the volatile pages of the running cluster refer to the snapshot, and drops those that it
  /// makes unnecessary where pages are short: hot ones in a second pass, if the others were too
  /// few. REQUIRES: its files can be read on all nodes, and it is the latest that ran. An error:
  /// any pointer may refer to it, or to an older one still. The same thread as `run`.
  Result<InstallReport> install(const SnapshotMetadata& snapshot, const StaysShort& stays_short);
  /// Lets the run under way, and all later ones, fail soon. Any thread.
  void cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }

  /// {"snapshot", "phase", of one that failed "failure", "unreadable": what the last one that ended
  /// well could not read of its base, and the sums of the nodes' progress}; {} when none was begun.
  /// Any thread.
  Json status() const;
  /// What the last run could not read has been given up, and told of. Any thread.
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

/// Opens the snapshot's files on all nodes, and closes all others there. `kept`: of older
/// snapshots, which stay closed, but are scrubbed, too.
Result<void> open_on_nodes(const Config& config, const NodeCall& call_node,
                           const std::vector<SnapshotFilePlace>& places,
                           const std::vector<SnapshotFilePlace>& kept = {});

/// Transactions of all nodes may begin with it from now on (R18). REQUIRES: open_on_nodes.
Result<void> publish_on_nodes(const Config& config, const NodeCall& call_node,
                              const SnapshotMetadata& snapshot);

/// When it returns, no transaction begins any more with a snapshot that is not in `keep`. Those
/// that run say so in their slots (snapshots_in_use).
Result<void> withdraw_on_nodes(const Config& config, const NodeCall& call_node,
                               const std::set<uint32_t>& keep);

}  // namespace atolldb
