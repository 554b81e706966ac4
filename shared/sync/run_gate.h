// Limits how many workers of a node run transactions at the same time. If a node has more workers
// than CPUs, the kernel would interrupt workers within transactions, and each would wait for a CPU
// until all others have had their turn. Locks would be held meanwhile, and epochs could not end.
// With a gate, the workers wait between transactions, where they hold nothing.
//
// A worker enters the gate before each attempt of a transaction, and leaves it afterwards. It keeps
// its place then, so that its next transaction enters without a change of shared lines. Other
// workers take the place if they wait: at the end of a turn, or when the worker has run nothing for
// a while.
//
// While a worker waits for a device, another one runs. After such a wait it continues at once, even
// if the gate is full: it may hold pages that others need. So no wait at the gate can be part of a
// deadlock.
//
// At the end of its transaction, such a worker keeps its place if at most twice as many workers run
// as there are places. Thanks to these spare workers, the next wait for the device need not wake a
// worker: a wake and a sleep cost as much as several transactions. At the end of each turn, one
// spare worker gives its place up.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "shared/base/check.h"
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
  class alignas(64) Pass {
   public:
    Pass() = default;
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    /// REQUIRES: the worker runs no transaction.
    ~Pass() { use(nullptr); }

    /// Gives a kept place of the gate before back. `gate` outlives the pass or the next call; null:
    /// none, so that all functions do nothing. REQUIRES: the worker runs no transaction.
    void use(RunGate* gate);

    /// Enters the gate if the worker has kept its place or if a place is free. Returns false if the
    /// worker must call `wait`.
    bool try_enter() {
      if (gate_ == nullptr) [[likely]]
        return true;
      Place kept = Place::kept;
      if (!place_.compare_exchange_strong(kept, Place::used, std::memory_order_relaxed)) {
        CHECK(kept == Place::none);
        return gate_->try_enter(*this);
      }
      entered_at_ = gate_->extensions_.load(std::memory_order_relaxed);
      return true;
    }
    /// Waits for a place and enters. REQUIRES: try_enter has returned false; the worker holds no
    /// lock and no page.
    void wait() { gate_->stand_in_line(*this); }
    /// Leaves the gate. Does nothing if the worker is in none.
    void leave() {
      if (is_inside()) [[unlikely]]
        gate_->leave(*this);
    }
    /// Gives back a place that the worker keeps between two transactions. Called before the worker
    /// sleeps.
    void give_back() {
      Place kept = Place::kept;
      if (place_.load(std::memory_order_relaxed) == Place::kept &&
          place_.compare_exchange_strong(kept, Place::none, std::memory_order_relaxed))
        gate_->pass_on();
    }
    /// Gives up the place, because the worker begins to wait for a device. Another worker gets it,
    /// unless enough of them run. Does nothing if the worker is in no gate.
    void begin_wait() {
      if (is_inside()) [[unlikely]]
        gate_->pass_on();
    }
    /// Ends the wait. Takes a place even if the gate is full.
    void end_wait() {
      if (is_inside()) [[unlikely]]
        gate_->running_.fetch_add(1, std::memory_order_relaxed);
    }

   private:
    friend class RunGate;
    /// Only the own thread changes it. But another worker may take a kept place (`none`).
    enum class Place : uint8_t {
      none,
      kept,  // between two transactions
      used,  // in a transaction, also while it waits for a device
    };

    bool is_inside() const { return place_.load(std::memory_order_relaxed) == Place::used; }

    RunGate* gate_ = nullptr;
    std::atomic<Place> place_{Place::none};
    std::atomic<uint32_t> leaves_{0};  // written by the own thread only
    uint32_t entered_at_ = 0;          // value of RunGate::extensions_ then; own thread only
    /// 1: this worker has got a place.
    std::atomic<uint32_t> is_granted_{0};
    uint32_t seen_leaves_ = 0;     // this and the next ones are guarded by the gate's lock
    uint64_t first_since_ns_ = 0;  // when the worker became the first one in line
    Pass* next_ = nullptr;         // the next one in line
    Pass* next_user_ = nullptr;    // the next one that uses the gate
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

  /// `places`: maximum number of workers inside, at least 1. `patience`: tests use another one.
  explicit RunGate(uint32_t places, std::chrono::milliseconds patience = kPatience);
  RunGate(const RunGate&) = delete;
  RunGate& operator=(const RunGate&) = delete;
  /// REQUIRES: no pass uses the gate.
  ~RunGate();

  uint32_t places() const { return places_; }
  /// Returns the number of places, with those that long transactions have added.
  uint32_t capacity() const { return capacity_.load(std::memory_order_relaxed); }
  /// Returns the number of workers that run now or keep a place. It exceeds capacity() by workers
  /// that have ended waits for a device.
  uint32_t running() const { return running_.load(std::memory_order_relaxed); }
  /// Returns the number of workers in line.
  uint32_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  void add_user(Pass& pass);
  void remove_user(Pass& pass);
  bool try_enter(Pass& pass);
  void leave(Pass& pass);
  void pass_on();
  void stand_in_line(Pass& pass);
  bool take_place();
  bool take_kept_place();
  bool add_place();
  bool remove_extra_place();
  bool give_up_excess();
  uint32_t append(Pass& pass);
  Pass* remove_first();

  /// While workers wait, or more run than there are places, one of so many transactions checks
  /// whether the turn has ended.
  static constexpr uint32_t kLeavesPerCheck = 8;

  // The counters are relaxed: they only decide who waits. Data that transactions share has its own
  // synchronisation. Each transaction reads the lines of the counters. They change when a worker
  // waits for a device or for a place, so about once in a turn if none waits for a device.
  alignas(64) std::atomic<uint32_t> running_{0};
  alignas(64) const uint32_t places_;
  const std::chrono::milliseconds patience_;
  std::atomic<uint32_t> capacity_;       // places_, and one more for each long transaction
  std::atomic<uint32_t> extensions_{0};  // how often a place was added
  std::atomic<uint32_t> waiting_{0};
  std::atomic<uint64_t> turn_ends_ns_{0};  // before this time `leave` passes no place on
  FutexLock lock_;
  Pass* first_ = nullptr;  // the pointers are guarded by lock_
  Pass* last_ = nullptr;
  Pass* users_ = nullptr;  // all passes that use the gate
};

}  // namespace atolldb
