// Whether calls to the device return in time (R58): what a process tells of its oldest call that is
// under way. Writer: its heartbeat. In the node's `metrics` segment, or local to the coordinator.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace atolldb {

class MetricFamilies;

/// A text in shared memory with one writer.
class SharedText {
 public:
  static constexpr size_t kBytes = 248;

  /// Of a longer text the last kBytes: file names are at the end of paths.
  void set(std::string_view text);
  std::string text() const;

 private:
  std::atomic<uint64_t> version_;  // odd while the text is written
  std::array<std::atomic<uint64_t>, kBytes / 8> words_;
};

/// Zeros: nothing is under way.
struct alignas(64) DeviceMetrics {
  std::atomic<uint64_t> pending_ns;  // age of the oldest call
  std::atomic<uint64_t> hangs;       // calls that were under way longer than the limit
  std::atomic<uint32_t> operation;   // IoOperation of a call past the limit; 0: there is none
  std::atomic<uint32_t> spare;
  SharedText path;  // of that call
};

/// The families of one scrape.
void add_device(MetricFamilies& families, const DeviceMetrics& device);

}  // namespace atolldb
