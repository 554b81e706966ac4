#include "shared/sync/run_gate.h"

#include <mutex>

#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Pause of the first worker in line before it tries to enter by itself. A worker that has left the
/// gate and sleeps between transactions passes no place on.
constexpr std::chrono::milliseconds kFirstPause{1};

constexpr uint64_t ns_of(std::chrono::nanoseconds time) {
  return static_cast<uint64_t>(time.count());
}

uint64_t gate_time_ns() { return ns_of(std::chrono::steady_clock::now().time_since_epoch()); }

}  // namespace

void RunGate::Pass::use(RunGate* gate) {
  CHECK(!is_inside_);
  gate_ = gate;
}

RunGate::RunGate(uint32_t places) : places_(places), capacity_(places) { CHECK(places != 0); }

RunGate::~RunGate() {
  CHECK(first_ == nullptr && running() == 0);  // workers end before their gate
}

bool RunGate::try_enter(Pass& pass) {
  CHECK(!pass.is_inside_);
  if (!take_place()) return false;
  pass.is_inside_ = true;
  pass.entered_at_ = extensions_.load(std::memory_order_relaxed);
  return true;
}

void RunGate::leave(Pass& pass) {
  CHECK(pass.is_inside_);
  pass.is_inside_ = false;
  const bool was_long = pass.entered_at_ != extensions_.load(std::memory_order_relaxed);
  if (was_long && remove_extra_place()) return;
  if (waiting() != 0 && ++pass.leaves_ % kLeavesPerCheck == 0) {
    const uint64_t now = gate_time_ns();
    if (now >= turn_ends_ns_.load(std::memory_order_relaxed)) {
      // If two workers get here at the same time, both pass their places on, which does no harm.
      turn_ends_ns_.store(now + ns_of(kTurn), std::memory_order_relaxed);
      pass_on();
      return;
    }
  }
  const uint32_t before = running_.fetch_sub(1, std::memory_order_relaxed);
  DCHECK(before != 0);
}

/// Gives up the caller's place together with a place that was added. Returns false if there is no
/// such place.
bool RunGate::remove_extra_place() {
  const std::lock_guard guard(lock_);
  const uint32_t now = capacity();
  DCHECK(now >= places_);
  if (now == places_) return false;
  capacity_.store(now - 1, std::memory_order_relaxed);
  running_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

/// Takes a free place. Returns false if there is none.
bool RunGate::take_place() {
  uint32_t running = running_.load(std::memory_order_relaxed);
  while (running < capacity()) {
    if (running_.compare_exchange_weak(running, running + 1, std::memory_order_relaxed))
      return true;
  }
  return false;
}

/// Gives the caller's place to the first worker in line. Frees it if there is none, or if more
/// workers run than there are places.
void RunGate::pass_on() {
  DCHECK(running() != 0);
  Pass* next = nullptr;
  Pass* new_first = nullptr;
  {
    const std::lock_guard guard(lock_);
    if (running() <= capacity()) next = remove_first();
    if (next == nullptr) {
      running_.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    next->is_granted_.store(1, std::memory_order_relaxed);
    new_first = first_;
  }
  // The passes may be gone. Then these calls wake no thread, or a thread that checks its own word.
  wake(next->is_granted_, 1);
  // The first worker in line sleeps for short times only.
  if (new_first != nullptr) wake(new_first->is_granted_, 1);
}

void RunGate::stand_in_line(Pass& pass) {
  CHECK(!pass.is_inside_);
  append(pass);
  uint64_t first_since = 0;  // 0: it was not the first one yet
  for (;;) {
    Pass* next = nullptr;
    {
      // Before the first sleep, too: a place may have become free before the worker was in line.
      const std::lock_guard guard(lock_);
      if (pass.is_granted_.load(std::memory_order_relaxed) != 0) break;
      if (first_ == &pass) {
        const uint64_t now = gate_time_ns();
        if (first_since == 0) first_since = now;
        const bool is_patient = now - first_since < ns_of(kPatience);
        if (take_place() || (!is_patient && add_place())) {
          remove_first();
          next = first_;
          pass.is_granted_.store(1, std::memory_order_relaxed);
        }
      }
    }
    if (pass.is_granted_.load(std::memory_order_relaxed) != 0) {
      // The next worker is the first one now, and must sleep for shorter times.
      if (next != nullptr) wake(next->is_granted_, 1);
      break;
    }
    wait_on(pass.is_granted_, 0, first_since == 0 ? kMaxSleep : kFirstPause);
  }
  pass.is_inside_ = true;
  pass.entered_at_ = extensions_.load(std::memory_order_relaxed);
}

/// Adds a place, and takes it. Returns true. REQUIRES: the lock is held.
bool RunGate::add_place() {
  capacity_.fetch_add(1, std::memory_order_relaxed);
  extensions_.fetch_add(1, std::memory_order_relaxed);
  running_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void RunGate::append(Pass& pass) {
  pass.is_granted_.store(0, std::memory_order_relaxed);
  pass.next_ = nullptr;
  const std::lock_guard guard(lock_);
  (first_ == nullptr ? first_ : last_->next_) = &pass;
  last_ = &pass;
  waiting_.fetch_add(1, std::memory_order_relaxed);
}

/// Removes and returns the first worker in line, or returns null. REQUIRES: the lock is held.
RunGate::Pass* RunGate::remove_first() {
  Pass* const first = first_;
  DCHECK((first == nullptr) == (waiting() == 0));
  if (first == nullptr) return nullptr;
  first_ = first->next_;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  return first;
}

}  // namespace atolldb
