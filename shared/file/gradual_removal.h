// Removes large files without a burst of work for the device.
//
// A file system that is mounted with `discard` tells the device about all blocks of a removed file,
// and other writes wait meanwhile: 45 ms for 256 MiB on a virtual disk. A snapshot job removes
// dozens of log files at once. Syncs of the log then took 100 to 250 ms. So a removed file loses
// only its name at once. A thread frees its blocks in small steps, with pauses.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "shared/base/unique_fd.h"
#include "shared/file/system_calls.h"

namespace atolldb {

/// Thread-safe. The thread starts with the first large file.
class GradualRemoval {
 public:
  /// Smaller files are freed at once. Larger ones are freed in steps of this many bytes.
  static constexpr uint64_t kStepBytes = uint64_t{4} << 20;
  /// After each step, the thread pauses as long as the step took, but at least this long. The
  /// minimum bounds the rate on file systems that discard later, with their journal.
  static constexpr std::chrono::milliseconds kShortestPause{2};
  /// Blocks are freed no earlier after the removal. So another process that was just opening the
  /// file has it open by then. A file that is open elsewhere is tried again after this time.
  static constexpr std::chrono::milliseconds kRetryPause{100};
  /// Limit for the number of removed files that keep a descriptor. Files above it are freed at
  /// once.
  static constexpr size_t kMaxFiles = 256;

  /// REQUIRES: `calls` outlives this object.
  explicit GradualRemoval(SystemCalls& calls) : calls_(calls) {}
  /// Frees all remaining blocks at once.
  ~GradualRemoval();
  GradualRemoval(const GradualRemoval&) = delete;
  GradualRemoval& operator=(const GradualRemoval&) = delete;

  /// Removes the name of the file now, and frees its blocks later. Processes that have the file
  /// open can read it as long as they keep it open. Returns an errno, or 0.
  int remove(const std::string& path);
  /// Frees the blocks of all removed files that are open nowhere else, without pauses.
  void finish();
  /// Returns how often blocks were freed. If the number has grown, there may be more room now.
  uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Step { more, done, in_use };
  struct Removed {
    UniqueFd file;  // without a name
    Clock::time_point at;
  };

  UniqueFd open_large(const std::string& path);
  void hand_over(UniqueFd file);
  void run();
  /// Frees the last `bytes` bytes of the file. Returns `done` also if that is impossible: closing
  /// the file then frees them.
  Step free_end(int file, uint64_t bytes);

  SystemCalls& calls_;
  std::mutex mutex_;
  std::condition_variable changed_;  // for all changes of the members below
  std::deque<Removed> files_;        // freed from the front
  std::deque<Removed> in_use_;       // open elsewhere, or just removed
  std::atomic<uint64_t> steps_ = 0;
  bool is_busy_ = false;  // true while the thread has taken a file out of `files_`
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace atolldb
