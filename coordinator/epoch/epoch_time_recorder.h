// Records in data_dir at which times epochs ended, for a restore to a point in time
// (engine/log/epoch_times.h). The heartbeat decides when to record. Another thread writes the file,
// because the heartbeat touches no file (R58).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/task_thread.h"
#include "engine/log/epoch_times.h"
#include "shared/file/file.h"
#include "shared/logging/logger.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"

namespace atolldb {

/// Time between two entries in a busy cluster. A restore to a time uses the last entry before that
/// time. So it may lack the commits of up to one period.
inline constexpr std::chrono::milliseconds kEpochTimePeriod{1000};

class EpochTimeRecorder {
 public:
  /// REQUIRES: `file_system` outlives the recorder.
  EpochTimeRecorder(FileSystem& file_system, std::string data_dir, const ClusterUuid& cluster_uuid,
                    Logger logger);
  EpochTimeRecorder(const EpochTimeRecorder&) = delete;
  EpochTimeRecorder& operator=(const EpochTimeRecorder&) = delete;
  ~EpochTimeRecorder() { stop(); }

  void start() { thread_.start(); }
  /// Waits for the write under way.
  void stop() { thread_.stop(); }

  /// Records the epoch before the current one if the last entry is old enough and something was
  /// committed since. Thread: the heartbeat's.
  void beat(const EpochBlock& epochs, const std::vector<NodeShared*>& nodes);

 private:
  /// Thread: thread_.
  void write(const EpochTime& time);

  FileSystem& file_system_;
  const std::string data_dir_;
  const ClusterUuid cluster_uuid_;
  Logger logger_;
  std::chrono::steady_clock::time_point recorded_at_;  // used by the heartbeat only
  uint64_t recorded_epoch_ = 0;                        // used by the heartbeat only
  std::atomic<bool> is_writing_{false};                // a device may hang: one write at a time
  std::optional<EpochTimesWriter> writer_;             // used by thread_ only
  bool has_failed_ = false;                            // used by thread_ only
  TaskThread thread_{"epoch-times"};
};

}  // namespace atolldb
