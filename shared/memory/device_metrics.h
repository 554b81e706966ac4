// Metrics of hanging devices (R58): a process's oldest device call in progress. Writer: the
// process's heartbeat. In the node's `metrics` segment, or local to the coordinator.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace atolldb {

/// A text in shared memory with one writer.
class SharedText {
 public:
  static constexpr size_t kBytes = 248;

  /// Stores the last kBytes of a longer text, because a path ends with the file name.
  void set(std::string_view text);
  std::string text() const;

 private:
  std::atomic<uint64_t> version_;  // odd while the text is written
  std::array<std::atomic<uint64_t>, kBytes / 8> words_;
};

/// All zero: no call is in progress.
struct alignas(64) DeviceMetrics {
  std::atomic<uint64_t> pending_ns;  // age of the oldest call
  std::atomic<uint64_t> hangs;       // number of calls that took longer than the limit
  std::atomic<uint32_t> operation;   // IoOperation of a call past the limit; 0: no such call
  std::atomic<uint32_t> spare;
  SharedText path;  // of that call
};

}  // namespace atolldb
