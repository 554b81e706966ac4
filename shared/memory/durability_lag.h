// Lag of the durable epoch, for display and alerts.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "shared/memory/control_layout.h"

namespace atolldb {

/// Returns the latest epoch whose commits are all durable and that gets no further commits. It
/// advances while no transaction commits, unlike EpochBlock::durable, on which acknowledgements and
/// block headers rely.
inline uint64_t latest_settled_epoch(const EpochBlock& epochs) {
  // Relaxed: for display only. `settled` follows `durable` with the next tick.
  return std::max(epochs.settled.load(std::memory_order_relaxed),
                  epochs.durable.load(std::memory_order_relaxed));
}

/// Returns the number of epochs that the oldest commits have waited for durability. 0: every commit
/// of an ended epoch is durable.
inline uint64_t durability_lag_epochs(const EpochBlock& epochs) {
  const uint64_t settled = latest_settled_epoch(epochs);
  const uint64_t current = epochs.current.load(std::memory_order_relaxed);
  // The current epoch has not ended. During a tick the previous one is not settled yet.
  constexpr uint64_t kUsual = 2;
  return current > settled + kUsual ? current - settled - kUsual : 0;
}

/// As durability_lag_epochs, in microseconds.
inline uint64_t durability_lag_us(const ControlSegment& control) {
  return durability_lag_epochs(control.epochs) * control.epoch_interval_us;
}

}  // namespace atolldb
