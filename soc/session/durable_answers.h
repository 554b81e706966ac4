// Answers of finished transactions, held back until the data that they depend on is durable (R19,
// R20).
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

/// A queue of answers, ordered by commit epoch, with a thread that delivers them. The thread sleeps
/// on `durable_signal` only while an answer waits, so an idle node uses no processor time. Thread:
/// any.
class DurableAnswers {
 public:
  /// Delivers an answer. If the cluster failed or ended before, `is_durable` is false, and the
  /// outcome is unknown (R41). Called once, by the queue's thread or by `add`. Must not block.
  using Deliver = std::function<void(bool is_durable)>;

  /// REQUIRES: the control segment outlives this object.
  explicit DurableAnswers(ControlSegment& control) : control_(control) {}
  DurableAnswers(const DurableAnswers&) = delete;
  DurableAnswers& operator=(const DurableAnswers&) = delete;
  ~DurableAnswers() { stop(std::chrono::milliseconds(0)); }

  void start();
  /// Calls `deliver` when `epoch` is durable, or at once if it is durable already. Epoch 0 is
  /// always durable.
  void add(uint64_t epoch, Deliver deliver);
  /// Waits until all answers are delivered. After `patience` it delivers the rest as not durable.
  void stop(std::chrono::milliseconds patience);

  /// Returns whether the caller runs on the queue's thread, so inside of a Deliver that waited.
  /// REQUIRES: `start` has returned.
  bool is_own_thread() const { return std::this_thread::get_id() == own_id_; }

  /// Returns the number of waiting answers.
  size_t waiting() const;

 private:
  void run();
  /// Delivers the answers whose epoch is durable, or all answers if `at_end`. Releases the lock
  /// while it delivers.
  void release(std::unique_lock<std::mutex>& lock, bool at_end);
  bool has_failed() const;

  ControlSegment& control_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, std::vector<Deliver>> waiting_;  // by epoch; guarded by mutex_
  bool ends_ = false;                                 // guarded by mutex_
  bool has_ended_ = false;                            // guarded by mutex_
  std::chrono::steady_clock::time_point give_up_;     // guarded by mutex_; valid if ends_
  std::thread thread_;
  std::thread::id own_id_;  // of thread_; is kept after the join, while workers may compare it
};

}  // namespace atolldb
