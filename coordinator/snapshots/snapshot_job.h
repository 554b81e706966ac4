// The work of one snapshot over all nodes: its steps from the plan to the durable metadata (R36,
// R37), and its installation beside the volatile pages. `SnapshotManager::make_snapshot` calls the
// steps in their order.
// Source: [FOEDUS15] section 7.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/node_calls.h"
#include "coordinator/snapshots/make_plan.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/install/install.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/file/file.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// The pages that one node has composed.
struct NodePart {
  std::vector<ComposedPartition> partitions;
  SnapshotFilePlace file;
  Json unreadable = Json::array();  // ranges of the base that could not be read (R56)
};

enum class SnapshotPhase : uint8_t {
  none,  // no job was begun yet
  planning,
  preparing,
  capturing,
  gleaning,
  combining,
  done,  // the metadata is durable, or the snapshot is installed
  failed,
  installing,
  not_installed,
};

/// Makes one snapshot after the other. Thread: one, except where a function says otherwise.
class SnapshotJob {
 public:
  /// REQUIRES: all arguments outlive this object.
  SnapshotJob(const Config& config, FileSystem& file_system, const NodeCall& call_node,
              Logger logger)
      : config_(config),
        file_system_(file_system),
        call_node_(call_node),
        logger_(std::move(logger)) {}

  // The steps of a snapshot, in their order. A step blocks until it is complete on all nodes. A
  // step that fails ends the job on all nodes and removes its files. A file remains only if its
  // removal fails. A retry takes another id.

  /// Begins the job of a new snapshot: decides which thread reads and composes what. REQUIRES: the
  /// id is larger than those of all jobs before.
  Result<SnapshotPlan> plan(const SnapshotTask& task);
  /// Moves the partitions' boundaries to keys where volatile pages allow an installation (R44).
  /// Does nothing in a recovery, which has no volatile pages.
  Result<void> align(const SnapshotTask& task, SnapshotPlan& plan);
  /// Lets the inboxes of all reducers accept records, before any mapper sends some.
  Result<void> prepare(const SnapshotTask& task, const SnapshotPlan& plan);
  /// Lets the nodes capture volatile pages that have not changed since the snapshot's epoch (R75).
  /// Returns the captured ranges of all nodes, or none if the task captures no pages.
  Result<std::vector<CapturedRange>> capture(const SnapshotTask& task, const SnapshotPlan& plan);
  /// Starts the mappers, which leave the log records of captured ranges out. The reducers collect,
  /// merge and compose what the mappers send. If the task overlaps an install, they compose only
  /// after the first request of `reduce_and_compose` (R84).
  Result<void> map(const SnapshotTask& task, const SnapshotPlan& plan,
                   const std::vector<CapturedRange>& captured);
  /// Waits until the reducers of all nodes have composed their pages into durable files.
  /// REQUIRES: no install is under way.
  Result<std::vector<NodePart>> reduce_and_compose(const SnapshotTask& task,
                                                   const SnapshotPlan& plan);
  /// Combines the roots of the partitions into the coordinator's own file of the snapshot.
  Result<SnapshotMetadata> combine(const SnapshotTask& task, const SnapshotPlan& plan,
                                   std::vector<NodePart> parts);
  /// Makes the metadata durable. The snapshot exists once the savepoint names it, too.
  Result<void> write_metadata(const SnapshotMetadata& metadata);

  /// Tells the nodes to keep the snapshot's files and to end the job. REQUIRES: the caller has
  /// tried to store the savepoint. If that failed, the files are kept as well, because the
  /// savepoint may name the snapshot.
  void keep(uint32_t snapshot);
  /// Ends the job on all nodes and removes its files. REQUIRES: its mappers were started, no thread
  /// is in one of its steps, and its metadata are not written. Thread: any.
  void give_up() { static_cast<void>(fail({ExitCode::failed, "its job was given up"})); }

  /// Returns whether some node still has less than this percentage of its pages free after the
  /// dropped pages became free. May block for up to a second.
  using PoolStillLow = std::function<bool(uint32_t free_percent)>;
  /// Sets pointers of the running cluster to the snapshot. Drops volatile pages that the snapshot
  /// makes unnecessary, until `free_percent` of each pool are free. If too few pages are free then,
  /// a second pass also drops hot pages. After an error, a pointer may refer to this snapshot or to
  /// an older one. `idle_cpus`: returns how many processors are idle now. `next`: the plan of a
  /// later job that has begun, or null. It keeps the pages across the bounds of its partitions
  /// (R85). REQUIRES: the snapshot's files can be read on all nodes, and no job composes (R84).
  /// Thread: any.
  Result<InstallReport> install(const SnapshotMetadata& snapshot, uint32_t free_percent,
                                const PoolStillLow& pool_still_low,
                                const std::function<double()>& idle_cpus,
                                const SnapshotPlan* next = nullptr);
  /// Makes the current job and all later jobs fail soon. Thread: any.
  void cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }

  /// Returns {} if no job was begun, else an object of:
  ///  * "snapshot", "phase", and "failure" for a job that failed;
  ///  * "unreadable": ranges of the base that the last complete job could not read;
  ///  * "progress": the sums of the nodes' progress;
  ///  * "installing": the snapshot whose install this job overlaps (R84), as long as it lasts.
  /// Thread: any.
  Json status() const;
  /// Returns the ranges of the base that the last complete job could not read. Thread: any.
  Json unreadable() const;
  /// Clears the unreadable ranges after a salvage has reported and omitted them. Thread: any.
  void forget_unreadable();

  /// Returns whether the latest install has set all pointers of the storage, and no range of it was
  /// unreadable since this coordinator began. Below such a range the delta tree may be the only
  /// readable place of changes (R56, R78).
  bool may_drain(uint32_t storage) const {
    return drainable_.contains(storage) && !damaged_.contains(storage);
  }
  /// Returns whether the delta tree of the storage would grow: it was not drained by any of the
  /// latest installs, or some range was unreadable.
  bool is_stuck(uint32_t storage) const {
    const auto found = incomplete_.find(storage);
    return damaged_.contains(storage) ||
           (found != incomplete_.end() && found->second >= kPatientInstalls);
  }
  /// Returns InstallReport::changed_bytes of the latest install, by storage.
  const std::map<uint32_t, uint64_t>& changed_bytes() const { return changed_bytes_; }

 private:
  /// A pointer that an install cannot set because transactions change its page all the time is set
  /// by one of the next installs.
  static constexpr uint32_t kPatientInstalls = 3;

  /// Returns the bytes that the job leaves free in the file system of this directory.
  uint64_t reserve_in(const SnapshotTask& task, const std::string& directory) const;
  Result<NodePart> await_part(const SnapshotTask& task, uint32_t node);
  Result<SnapshotMetadata> combine_parts(const SnapshotTask& task, const SnapshotPlan& plan,
                                         std::vector<NodePart> parts);
  /// Ends the job after a failed step. Returns the error with the id of the snapshot.
  std::unexpected<Error> fail(const Error& error);
  template <typename Value>
  Result<Value> fail_on_error(Result<Value> result) {
    if (!result) return fail(result.error());
    return result;
  }
  Result<SnapshotTask> ask_for_reads(SnapshotTask task);
  void discard(uint32_t snapshot);

  void set_next(const SnapshotPlan* next);
  Json roots_of(const std::vector<SnapshotStorage>& storages) const;
  Result<InstallReport> install_passes(const SnapshotMetadata& snapshot, uint32_t free_percent,
                                       const PoolStillLow& pool_still_low,
                                       const std::function<double()>& idle_cpus);
  void drop_hot(const SnapshotMetadata& snapshot, uint32_t free_percent,
                const std::function<double()>& idle_cpus, InstallReport& report);
  Result<InstallReport> install_pass(const SnapshotMetadata& snapshot, const DropLimits& limits,
                                     const std::function<double()>& idle_cpus);
  void drain(const SnapshotMetadata& snapshot, const std::function<double()>& idle_cpus,
             InstallReport& report);
  Result<InstallReport> ask_to_install(const SnapshotMetadata& snapshot, const DropLimits& limits,
                                       const std::vector<std::vector<SnapshotStorage>>& shares,
                                       bool drains, const std::function<double()>& idle_cpus);
  /// Result of a pass on one node.
  struct NodeInstall {
    InstallReport report;
    // Storages with delta trees that may be drained now, and those with others.
    std::vector<uint32_t> drainable;
    std::vector<uint32_t> incomplete;
    std::vector<std::pair<uint32_t, uint64_t>> changed;  // storage, InstallReport::changed_bytes
  };
  void record_drainable(const NodeInstall& install);
  void record_progress(uint32_t node, Json answer);
  Result<NodeInstall> install_on(uint32_t node, Json body,
                                 const std::function<double()>& idle_cpus);

  /// Begins the phase. `failure`: the reason for the phase `failed`.
  void enter(SnapshotPhase phase, uint32_t snapshot, const std::string& failure = {});
  void record_unreadable(const std::vector<NodePart>& parts);

  const Config& config_;
  FileSystem& file_system_;
  const NodeCall& call_node_;
  Logger logger_;
  std::atomic<bool> is_cancelled_{false};
  std::set<uint32_t> damaged_;  // storages of which some range was unreadable in a job
  // Results of the latest install:
  std::set<uint32_t> drainable_;  // storages whose delta trees may be drained
  struct OpenDrain {
    SnapshotMetadata snapshot;
    std::vector<std::vector<SnapshotStorage>> shares;
  };
  std::optional<OpenDrain> open_drain_;  // a drain that has failed on some node
  /// By storage: the number of successive installs that could not set all pointers.
  std::map<uint32_t, uint32_t> incomplete_;
  std::map<uint32_t, uint64_t> changed_bytes_;  // by storage, see InstallReport
  // Of the current or latest install:
  bool is_overlapped_ = false;  // a later job has begun, which has phase and progress
  std::map<uint32_t, std::vector<uint64_t>> next_bounds_;  // by storage (R85)
  mutable std::mutex mutex_;
  // The next members are guarded by mutex_. Only the thread of the steps changes them, except
  // unreadable_ and progress_.
  SnapshotPhase phase_ = SnapshotPhase::none;
  uint32_t snapshot_ = 0;
  uint32_t installing_ = 0;  // snapshot of an install that a later job overlaps; 0: none
  std::string failure_;      // reason of the phase `failed`; empty in other phases
  Json unreadable_ = Json::array();
  std::vector<Json> progress_;  // progress of the current job, by node
};

/// Returns the percentage of each pool that the first pass of an install frees. Transactions use
/// pages until the next install ends. If only `high_water` percent were free then, a growing
/// database would soon have a low pool, and that costs hot pages. `growth`: share of the fullest
/// pool that transactions used during the job. Less than 0: pages became free.
uint32_t percent_to_free(uint32_t high_water, double growth);

/// Returns how many threads of a node should install from now on: one more for each idle processor,
/// one less if almost none is idle. `now`: how many install now. `idle_cpus`: the node's share of
/// the idle processors.
uint32_t next_installers(uint32_t now, double idle_cpus, uint32_t most);

/// Distributes the storages to the nodes that install a snapshot. Returns the share of each node,
/// by node. Storages are assigned round robin, those with most records first. A storage is never
/// split. With many sockets, key ranges would be better, so that each node installs in its own
/// pages.
std::vector<std::vector<SnapshotStorage>> divide_storages(std::vector<SnapshotStorage> storages,
                                                          uint32_t node_count);

}  // namespace atolldb
