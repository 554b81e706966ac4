// The steps of one checkpoint on the nodes: divide, begin, wait, end. The caller installs the
// checkpoint between the last two. Source: [SILOR14] section 4.2.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "coordinator/catalog/catalog.h"
#include "coordinator/node_calls.h"
#include "engine/checkpoint/checkpoint_metadata.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/message/control_message.h"

namespace atolldb {

struct CheckpointInput {
  uint32_t id = 0;
  uint64_t replay_epoch = 0;  // R88
  ClusterUuid cluster_uuid = {};
  /// All storages that exist after the replay epoch was taken (R97).
  std::vector<StorageEntry> storages;
  /// The files leave the disk reserve free. False if only a checkpoint lets log files be deleted.
  bool keeps_reserve = true;
};

/// Returns how many files each checkpoint thread of the node writes
/// (`durability.checkpoint_files`). The automatic number lets each worker of the node read another
/// file in a recovery. It is at least 4, so that a recovery with another number of nodes can divide
/// the files, too.
uint32_t files_of_each_thread(const Config& config, uint32_t node);

/// Thread: one, unless a function says otherwise.
class CheckpointJob {
 public:
  /// REQUIRES: both references outlive the job.
  CheckpointJob(const Config& config, const NodeCall& call_node)
      : config_(config), call_node_(call_node) {}

  /// Lets all nodes copy their parts of all storages. Returns the metadata without the end epoch.
  /// All files are synced then. After an error, and after a failed installation, `end` discards the
  /// files. The numbers of records of the storages are not marked as estimates. Error: code
  /// not_running after a cancellation.
  Result<CheckpointMetadata> copy(const CheckpointInput& task);
  /// Ends the checkpoint on all nodes. Without `keep` the nodes remove its files.
  Result<void> end(uint32_t id, bool keep);

  /// Ends `copy` soon. All later calls of `copy` fail. Thread: any.
  void cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }
  bool is_cancelled() const { return is_cancelled_.load(std::memory_order_relaxed); }
  /// Returns the sums of the nodes' progress during `copy`. Thread: any.
  Json progress() const;

 private:
  Result<void> begin(const CheckpointInput& task);
  /// Returns the answer of a node that has copied its parts. `has_failed`: another node has failed,
  /// so the wait ends.
  Result<Json> await_copy(uint32_t id, uint32_t node, const std::atomic<bool>& has_failed);

  const Config& config_;
  const NodeCall& call_node_;
  // Relaxed: the flag only ends loops.
  std::atomic<bool> is_cancelled_{false};
  mutable std::mutex mutex_;
  std::vector<Json> progress_;  // latest answer of each node; guarded by mutex_
};

}  // namespace atolldb
