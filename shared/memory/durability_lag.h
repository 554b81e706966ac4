// How far durability is behind the clock, for people and alerts.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "shared/memory/control_layout.h"

namespace atolldb {

/// Returns the latest epoch of which every commit is durable and that gets no others. Goes on while
/// nothing commits, unlike EpochBlock::durable, which answers and block headers rely on.
inline uint64_t latest_settled_epoch(const EpochBlock& epochs) {
  // Relaxed: for people. `settled` follows `durable` with the next tick.
  return std::max(epochs.settled.load(std::memory_order_relaxed),
                  epochs.durable.load(std::memory_order_relaxed));
}

/// Returns for how many epochs the oldest commits have waited for durability. 0: everything that
/// has committed in an epoch that is over is durable.
inline uint64_t durability_lag_epochs(const EpochBlock& epochs) {
  const uint64_t settled = latest_settled_epoch(epochs);
  const uint64_t current = epochs.current.load(std::memory_order_relaxed);
  // The current epoch is not over, and amid a tick the one before is not settled.
  constexpr uint64_t kUsual = 2;
  return current > settled + kUsual ? current - settled - kUsual : 0;
}

/// The same in microseconds.
inline uint64_t durability_lag_us(const ControlSegment& control) {
  return durability_lag_epochs(control.epochs) * control.epoch_interval_us;
}

}  // namespace atolldb
