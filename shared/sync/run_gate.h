// Limits how many workers of a node run transactions at the same time. If a node has more workers
// than CPUs, the kernel would interrupt workers within transactions, and each would wait for a CPU
// until all others have had their turn. Locks would be held meanwhile, and epochs could not end.
// With a gate, the workers wait between transactions, where they hold nothing.
//
// A worker enters the gate before each attempt of a transaction, and leaves it afterwards. While it
// waits for a device, another worker runs. After such a wait it continues at once, even if the gate
// is full: it may hold pages that others need. So no wait at the gate can be part of a deadlock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "shared/sync/wait_word.h"

namespace atolldb {

/// Thread: any, but each Pass belongs to one thread.
class RunGate {
 public:
  /// While workers wait, the gate passes a place on after this time, at the end of a transaction.
  static constexpr std::chrono::microseconds kTurn{1000};
  /// Maximum time that a worker is the first one in line. Then the gate gets one place more, until
  /// a worker leaves that was inside at this time. So transactions that take longer delay the
  /// others only by this time.
  static constexpr std::chrono::milliseconds kPatience{20};

  /// A worker's relation to a gate.
  class Pass {
   public:
    Pass() = default;
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    /// `gate` outlives the pass; null: none, so that all functions do nothing. REQUIRES: the worker
    /// is in no gate.
    void use(RunGate* gate);

    /// Enters the gate if it has a free place. Returns false if the worker must call `wait`.
    bool try_enter() { return gate_ == nullptr || gate_->try_enter(*this); }
    /// Waits for a place and enters. REQUIRES: try_enter has returned false; the worker holds no
    /// lock and no page.
    void wait() { gate_->stand_in_line(*this); }
    /// Leaves the gate. Does nothing if the worker is in none.
    void leave() {
      if (is_inside_) [[unlikely]]
        gate_->leave(*this);
    }
    /// Gives the place to another worker, because this one begins to wait for a device. Does
    /// nothing if the worker is in no gate.
    void begin_wait() {
      if (is_inside_) [[unlikely]]
        gate_->pass_on();
    }
    /// Ends the wait. Takes a place even if the gate is full.
    void end_wait() {
      if (is_inside_) [[unlikely]]
        gate_->running_.fetch_add(1, std::memory_order_relaxed);
    }

   private:
    friend class RunGate;
    RunGate* gate_ = nullptr;
    uint32_t leaves_ = 0;               // used by the own thread only
    bool is_inside_ = false;            // used by the own thread only; also true in a wait
    uint32_t entered_at_ = 0;           // value of RunGate::extensions_ then
    std::atomic<uint32_t> is_granted_;  // 1: another worker has passed its place on to this one
    Pass* next_ = nullptr;              // the next one in line; guarded by the gate's lock
  };

  /// A wait for a device: begins and ends with this object.
  class DeviceWait {
   public:
    /// `pass`: null: does nothing.
    explicit DeviceWait(Pass* pass) : pass_(pass) {
      if (pass_ != nullptr) pass_->begin_wait();
    }
    DeviceWait(const DeviceWait&) = delete;
    DeviceWait& operator=(const DeviceWait&) = delete;
    ~DeviceWait() {
      if (pass_ != nullptr) pass_->end_wait();
    }

   private:
    Pass* pass_;
  };

  /// `places`: maximum number of workers inside, at least 1.
  explicit RunGate(uint32_t places);
  RunGate(const RunGate&) = delete;
  RunGate& operator=(const RunGate&) = delete;
  /// REQUIRES: no worker is inside or in line.
  ~RunGate();

  uint32_t places() const { return places_; }
  /// Returns the number of places, with those that long transactions have added.
  uint32_t capacity() const { return capacity_.load(std::memory_order_relaxed); }
  /// Returns the number of workers that run now. It may exceed places().
  uint32_t running() const { return running_.load(std::memory_order_relaxed); }
  /// Returns the number of workers in line.
  uint32_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  bool try_enter(Pass& pass);
  void leave(Pass& pass);
  void pass_on();
  void stand_in_line(Pass& pass);
  bool take_place();
  bool add_place();
  bool remove_extra_place();
  void append(Pass& pass);
  Pass* remove_first();

  /// While workers wait, one of so many transactions checks whether the turn has ended.
  static constexpr uint32_t kLeavesPerCheck = 8;

  // The counters are relaxed: they only decide who waits. Data that transactions share has its own
  // synchronisation. Each transaction changes running_ twice, so it has a line of its own; the next
  // line changes about once in a turn.
  alignas(64) std::atomic<uint32_t> running_{0};
  alignas(64) const uint32_t places_;
  std::atomic<uint32_t> capacity_;       // places_, and one more for each long transaction
  std::atomic<uint32_t> extensions_{0};  // how often a place was added
  std::atomic<uint32_t> waiting_{0};
  std::atomic<uint64_t> turn_ends_ns_{0};  // before this time `leave` passes no place on
  FutexLock lock_;
  Pass* first_ = nullptr;  // this and `last_` are guarded by lock_
  Pass* last_ = nullptr;
};

}  // namespace atolldb
