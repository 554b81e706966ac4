// The background scrub of a node: reads the snapshot files and logs that are its own, at a bounded
// rate, again and again (rule R56). It only finds damage, and tells of it; nothing ends.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/snapshot/scrub.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// Damage that a node lists of a cycle; more is only counted.
inline constexpr size_t kMaxListedDamage = 1000;

struct ScrubberSettings {
  FileSystem* file_system = nullptr;  // outlives the scrubber
  ClusterUuid cluster_uuid = {};
  uint32_t node = 0;
  uint64_t bytes_per_s = 0;  // 0: no scrub
  /// Directories whose node<k>/ may hold logs of the node.
  std::vector<std::string> log_directories;
  /// Between the end of a cycle and the begin of the next one.
  std::chrono::milliseconds pause{60'000};
};

/// Of all cycles, or of the last one that ended and the one under way.
struct ScrubProgress {
  uint64_t bytes_read = 0;     // since the node began
  uint64_t damaged = 0;        // pages, blocks and files: of the last cycle, or of this one if more
  uint64_t percent = 0;        // of the cycle under way
  uint64_t cycles = 0;         // that have ended
  uint64_t finished_at_s = 0;  // the last of them, since 1970; 0: none
};

class Scrubber {
 public:
  Scrubber(ScrubberSettings settings, Logger logger);
  Scrubber(const Scrubber&) = delete;
  Scrubber& operator=(const Scrubber&) = delete;
  ~Scrubber() { stop(); }

  /// Begins as soon as there are files. No-op without a rate.
  void start();
  void stop();
  /// The snapshot files there are, of all nodes. Cycles begin with those of this node.
  void set_files(const std::vector<SnapshotFilePlace>& places);

  // Any thread.
  ScrubProgress progress() const;
  /// {"percent", "cycles", "finished_at_s", "bytes_read", "damaged", "damage": [...]}.
  Json describe() const;

 private:
  using Clock = std::chrono::steady_clock;

  void work();
  void run_cycle();
  void scrub_snapshots(const std::vector<SnapshotFilePlace>& places, const ScrubHooks& hooks);
  void scrub_logs(const ScrubHooks& hooks);
  bool pace(uint64_t bytes);
  void note(const ScrubDamage& damage);
  bool is_own(const SnapshotFilePlace& place) const;
  bool is_wanted(const SnapshotFilePlace& place) const;

  const ScrubberSettings settings_;
  Logger logger_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  bool ends_ = false;
  std::vector<SnapshotFilePlace> places_;  // own ones
  ScrubProgress progress_;
  uint64_t cycle_bytes_ = 0;  // to be read in the cycle under way
  uint64_t cycle_done_ = 0;
  std::vector<ScrubDamage> last_;     // of the cycle before
  std::vector<ScrubDamage> current_;  // of this one
  uint64_t last_count_ = 0;
  uint64_t current_count_ = 0;

  Clock::time_point next_read_;  // the thread's
  std::thread thread_;
};

}  // namespace atolldb
