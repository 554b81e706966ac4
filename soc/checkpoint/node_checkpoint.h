// One node's part of one checkpoint: threads that copy their ranges of all storages to files.
// Source: [SILOR14] section 4.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/checkpoint/checkpoint_plan.h"
#include "engine/checkpoint/checkpoint_writer.h"
#include "engine/transaction/worker_context.h"
#include "shared/file/file_system_wrappers.h"
#include "shared/logging/logger.h"
#include "shared/memory/checkpoint_metrics.h"
#include "shared/memory/worker_metrics.h"
#include "soc/checkpoint/awaited_task.h"
#include "soc/worker/worker.h"

namespace atolldb {

/// What checkpoints and replays use of their node. All pointers outlive them.
struct CheckpointResources {
  const ClusterView* view = nullptr;
  PagePool* pool = nullptr;
  FileSystem* file_system = nullptr;
  uint32_t node = 0;
  /// Thread i of a checkpoint has the page slot first_slot + i. Nothing else uses these slots.
  uint32_t first_slot = 0;
  uint32_t slots = 0;
  std::function<WorkerMetrics&(uint32_t slot)> metrics;
  uint32_t write_set = 0;  // capacity, as that of the workers
  /// Returns the directory of thread i.
  std::function<std::string(uint32_t thread)> directory;
  std::string data_dir;       // with the metadata of checkpoints
  std::vector<int32_t> cpus;  // of the threads of a checkpoint; empty: any
  /// A replay runs on the workers. Gives worker i a task, or returns an error if it has ended.
  uint32_t workers = 0;
  std::function<Result<void>(uint32_t worker, WorkerTask task)> submit;
};

struct CheckpointTask {
  uint64_t checkpoint = 0;
  uint64_t replay_epoch = 0;
  uint32_t threads = 1;
  uint32_t files = 1;         // of each thread
  uint64_t disk_reserve = 0;  // bytes that the files leave free in their file systems
  uint64_t sync_bytes = kCheckpointSyncBytes;  // of a thread, between two syncs; 0: one at the end
  std::chrono::microseconds pause{0};          // of a thread, after each pause_bytes
  uint64_t pause_bytes = kCheckpointPauseBytes;
  uint32_t first_part = 0;  // thread i copies part first_part + i of each storage
  std::vector<DividedStorage> storages;
};

/// Thread: any, for all functions.
class NodeCheckpoint {
 public:
  /// Begins to copy at once. REQUIRES: `resources` outlives the checkpoint; no other one uses the
  /// slots; each storage has the parts of all threads.
  NodeCheckpoint(CheckpointTask task, const CheckpointResources& resources, Logger logger);
  NodeCheckpoint(const NodeCheckpoint&) = delete;
  NodeCheckpoint& operator=(const NodeCheckpoint&) = delete;
  /// Gives the checkpoint up if it has not ended. Keeps the files of a complete one.
  ~NodeCheckpoint();

  uint64_t id() const { return task_.checkpoint; }
  /// Answers like AwaitedTask::wait, with the files of this node when it has ended.
  void wait(AwaitedTask::Clock::time_point deadline, ControlReply reply) {
    copying_->wait(deadline, std::move(reply));
  }
  /// Gives the checkpoint up, even if it is complete. Answers {} when its files are removed.
  void discard(const ControlReply& reply);
  bool has_ended() const { return copying_->has_ended(); }
  void cancel();

  CheckpointProgress progress() const;

 private:
  /// Counters and files of one thread.
  struct Part {
    std::array<std::atomic<uint64_t>, std::size(kCheckpointCounters)> counters{};
    std::vector<CheckpointFileInfo> files;  // guarded by files_mutex_
    /// Records that the thread has copied of each storage of the task. Guarded by files_mutex_.
    std::vector<uint64_t> records;

    void publish(const CheckpointProgress& progress);
  };

  Result<Json> copy();
  void record_failure(const Error& error);
  Result<void> copy_part(uint32_t thread);
  /// `records`: gets the number of copied records of each storage.
  Result<std::vector<CheckpointFileInfo>> copy_storages(WorkerContext& worker,
                                                        CheckpointWriter& writer, uint32_t thread,
                                                        std::vector<uint64_t>& records);
  CheckpointWriterSettings writer_settings(uint32_t thread);
  /// Waits for the pause of the task, or until the checkpoint is given up.
  void pause();
  Json files_json();
  Json storages_json();
  void remove_files();

  const CheckpointTask task_;
  const CheckpointResources& resources_;
  ReservingFileSystem file_system_;  // for the files of this checkpoint
  Logger logger_;
  std::atomic<bool> is_cancelled_{false};  // relaxed: the threads only have to end soon
  std::mutex pause_mutex_;                 // held to set is_cancelled_, so that no pause misses it
  std::condition_variable pauses_end_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::mutex files_mutex_;
  std::optional<Error> failure_;          // the first error of a thread; guarded by files_mutex_
  std::unique_ptr<AwaitedTask> copying_;  // uses all members before it
};

/// Converts progress to members of an answer.
Json to_json(const CheckpointProgress& progress);

}  // namespace atolldb
