// Answers to finished transactions, held back until what they tell is durable (R19, R20).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "shared/memory/control_layout.h"

namespace atolldb {

/// A queue by commit epoch and a thread, which sleeps on `durable_signal` while something waits and
/// on nothing else, so that an idle node uses no processor time. Thread safe.
class DurableAnswers {
 public:
  /// `is_durable`: false when the cluster failed or ended before: the outcome is unknown (R41).
  /// Called once, by the thread of the queue or by the caller of `add`; must not block.
  using Deliver = std::function<void(bool is_durable)>;

  /// REQUIRES: the control segment outlives this.
  explicit DurableAnswers(const ControlSegment& control) : control_(control) {}
  DurableAnswers(const DurableAnswers&) = delete;
  DurableAnswers& operator=(const DurableAnswers&) = delete;
  ~DurableAnswers() { stop(std::chrono::milliseconds(0)); }

  void start();
  /// Delivers when `epoch` is durable; at once when it is already. 0 is always durable.
  void add(uint64_t epoch, Deliver deliver);
  /// Waits until all are delivered; after `patience` the rest is told that it is not durable.
  void stop(std::chrono::milliseconds patience);

  /// Answers that wait now.
  size_t waiting() const;

 private:
  void run();
  /// Delivers what is durable by now (at the end: everything). Takes and gives back the lock.
  void release(std::unique_lock<std::mutex>& lock, bool at_end);
  bool has_failed() const;

  const ControlSegment& control_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, std::vector<Deliver>> waiting_;  // by epoch; guarded by mutex_
  bool ends_ = false;                                 // guarded by mutex_
  bool has_ended_ = false;                            // guarded by mutex_
  std::chrono::steady_clock::time_point give_up_;     // guarded by mutex_, once `ends_`
  std::thread thread_;
};

}  // namespace atolldb
