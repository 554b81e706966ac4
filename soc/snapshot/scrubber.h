// The background scrub of a node (R56). It reads this node's snapshot files, or its files of the
// newest checkpoint, and its logs repeatedly, at a bounded rate. It only finds and reports damage;
// it stops nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/recovery/scrub.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// A node lists at most this many damaged places of a cycle. It only counts the rest.
inline constexpr size_t kMaxListedDamage = 1000;

struct ScrubberSettings {
  FileSystem* file_system = nullptr;  // outlives the scrubber
  ClusterUuid cluster_uuid = {};
  uint32_t node = 0;
  uint64_t bytes_per_s = 0;  // rate of the scrub; 0: no scrub
  /// Directories whose node<k>/ may hold logs of this node.
  std::vector<std::string> log_directories;
  /// The data directory whose newest checkpoint is read. Empty: the cluster takes no checkpoints.
  std::string checkpoint_data_dir;
  /// Time between the end of a cycle and the start of the next one.
  std::chrono::milliseconds pause{60'000};
};

/// The damage that one cycle has found.
struct FoundDamage {
  std::vector<ScrubDamage> listed;                // at most kMaxListedDamage
  std::map<std::string, uint64_t> count_by_path;  // all damage, listed or not

  uint64_t count() const;
};

/// Progress of the current cycle and of the last complete one.
struct ScrubProgress {
  uint64_t bytes_read = 0;     // bytes read since the node began
  uint64_t damaged = 0;        // damaged places in the last or current cycle: the larger number
  uint64_t percent = 0;        // progress of the current cycle
  uint64_t cycles = 0;         // number of complete cycles
  uint64_t finished_at_s = 0;  // end of the last complete cycle, in s since 1970; 0: none
};

class Scrubber {
 public:
  Scrubber(ScrubberSettings settings, Logger logger);
  Scrubber(const Scrubber&) = delete;
  Scrubber& operator=(const Scrubber&) = delete;
  ~Scrubber() { stop(); }

  /// Starts the thread, which begins when the rate is not 0, and there are snapshot files or
  /// checkpoints are taken.
  void start();
  void stop();
  /// Changes bytes_per_s and pause of the settings, also within a cycle or a pause.
  void set_pace(uint64_t bytes_per_s, std::chrono::milliseconds pause);
  /// Sets the snapshot files to read. Ignores the files of other nodes. Node 0 also reads the files
  /// of the coordinator.
  void set_files(const std::vector<SnapshotFilePlace>& places);

  // Thread: any.
  ScrubProgress progress() const;
  /// Returns {"percent", "cycles", "finished_at_s", "bytes_read", "damaged", "damage": [...]}.
  Json describe() const;

 private:
  using Clock = std::chrono::steady_clock;

  void work();
  void run_cycle();
  void scrub_snapshots(const std::vector<SnapshotFilePlace>& places, const ScrubHooks& hooks);
  void scrub_checkpoint(const CheckpointMetadata& metadata, const ScrubHooks& hooks);
  void scrub_logs(const ScrubHooks& hooks);
  std::optional<CheckpointMetadata> find_checkpoint() const;
  bool pace(uint64_t bytes);
  void pause(std::unique_lock<std::mutex>& lock);
  void record(const ScrubDamage& damage);
  bool is_own(const SnapshotFilePlace& place) const;
  bool is_wanted(const SnapshotFilePlace& place) const;

  const ScrubberSettings settings_;
  Logger logger_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // The next members are guarded by mutex_.
  bool ends_ = false;
  uint64_t bytes_per_s_;  // 0: no scrub
  std::chrono::milliseconds pause_;
  std::vector<SnapshotFilePlace> places_;  // files of this node
  ScrubProgress progress_;
  uint64_t cycle_bytes_ = 0;  // size of the files that the current cycle reads
  uint64_t cycle_done_ = 0;
  FoundDamage last_;     // damage found by the last complete cycle
  FoundDamage current_;  // damage found by the current cycle

  Clock::time_point next_read_;  // used by the thread only
  std::thread thread_;
};

}  // namespace atolldb
