// Stages of an acknowledgement: the steps from the end of an epoch until its commits are known to
// be durable. All times are of the machine's monotonic clock, which all processes share.
#pragma once

#include <chrono>
#include <cstdint>
#include <iterator>

namespace atolldb {

enum class EpochStage : uint32_t {
  epoch_end,  // until the logger begins: it has woken up, or ended its previous batch
  close,      // until no worker of the logger is committing in the epoch
  write,      // write of the blocks and of the marker, in one call
  sync,
  marker,   // until the coordinator sees that the marker is synced
  publish,  // until the durable epoch is raised and all waiters are woken
};
inline constexpr uint32_t kEpochStageCount = 6;
/// The loggers measure their own stages, which come first. The coordinator measures the others.
inline constexpr uint32_t kLoggerStageCount = 4;
static_assert(static_cast<uint32_t>(EpochStage::sync) + 1 == kLoggerStageCount);

/// Names in metrics, in the status and in reports.
inline constexpr const char* kEpochStageNames[] = {"epoch_end", "close",  "write",
                                                   "sync",      "marker", "publish"};
static_assert(std::size(kEpochStageNames) == kEpochStageCount);

/// Returns the time of the monotonic clock in nanoseconds.
inline uint64_t monotonic_time_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

/// Returns the time between two events, or 0 if the second one was before the first. Two threads
/// may have measured them.
constexpr uint64_t ns_since(uint64_t from, uint64_t to) { return to > from ? to - from : 0; }

}  // namespace atolldb
