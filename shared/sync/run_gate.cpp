#include "shared/sync/run_gate.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Pause of the first worker in line between two checks for a place. A worker that sleeps
/// between transactions passes no place on.
constexpr std::chrono::milliseconds kFirstPause{1};
/// Shortest pause of the others in line. After it, one of them learns that it is the first now. To
/// wake it at that time would cost as much as to wake the worker that gets a place.
constexpr std::chrono::milliseconds kPauseInLine{5};

// Values of Pass::is_granted_.
constexpr uint32_t kWaits = 0;
constexpr uint32_t kGranted = 1;

constexpr uint64_t ns_of(std::chrono::nanoseconds time) {
  return static_cast<uint64_t>(time.count());
}

/// Returns the pause of a worker that has stood in line behind so many others. The line moves by a
/// worker in each turn, or faster.
std::chrono::milliseconds pause_behind(uint32_t others) {
  return std::clamp(std::chrono::milliseconds(others), kPauseInLine, kMaxSleep);
}

uint64_t gate_time_ns() { return ns_of(std::chrono::steady_clock::now().time_since_epoch()); }

}  // namespace

void RunGate::Pass::use(RunGate* gate) {
  CHECK(!is_inside());
  give_back();
  if (gate_ != nullptr) gate_->remove_user(*this);
  gate_ = gate;
  if (gate_ != nullptr) gate_->add_user(*this);
}

RunGate::RunGate(uint32_t places, std::chrono::milliseconds patience)
    : places_(places), patience_(patience), capacity_(places) {
  CHECK(places != 0);
}

RunGate::~RunGate() {
  CHECK(users_ == nullptr && first_ == nullptr && running() == 0);  // workers end before their gate
}

void RunGate::add_user(Pass& pass) {
  DCHECK(pass.place_.load(std::memory_order_relaxed) == Pass::Place::none);
  const std::lock_guard guard(lock_);
  pass.next_user_ = users_;
  users_ = &pass;
}

void RunGate::remove_user(Pass& pass) {
  DCHECK(pass.place_.load(std::memory_order_relaxed) == Pass::Place::none);
  const std::lock_guard guard(lock_);
  Pass** link = &users_;
  while (*link != &pass) {
    CHECK(*link != nullptr);  // it is one of the users
    link = &(*link)->next_user_;
  }
  *link = pass.next_user_;
}

bool RunGate::try_enter(Pass& pass) {
  if (!take_place()) return false;
  pass.place_.store(Pass::Place::used, std::memory_order_relaxed);
  pass.entered_at_ = extensions_.load(std::memory_order_relaxed);
  return true;
}

void RunGate::leave(Pass& pass) {
  DCHECK(pass.is_inside());
  const uint32_t leaves = pass.leaves_.load(std::memory_order_relaxed) + 1;
  pass.leaves_.store(leaves, std::memory_order_relaxed);
  bool keeps_place = true;
  const bool was_long = pass.entered_at_ != extensions_.load(std::memory_order_relaxed);
  const bool may_pass_on = waiting() != 0 || running() > capacity();
  if ((was_long && remove_extra_place()) || give_up_excess()) {
    keeps_place = false;
  } else if (may_pass_on && leaves % kLeavesPerCheck == 0) {
    const uint64_t now = gate_time_ns();
    if (now >= turn_ends_ns_.load(std::memory_order_relaxed)) {
      // If two workers get here at the same time, both pass their places on, which does no harm.
      turn_ends_ns_.store(now + ns_of(kTurn), std::memory_order_relaxed);
      keeps_place = false;
      pass_on();
    }
  }
  using enum Pass::Place;
  pass.place_.store(keeps_place ? kept : none, std::memory_order_relaxed);
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

/// Gives up the caller's place if more workers than twice the places run, because some have ended
/// waits for a device. Returns false if this is not so.
bool RunGate::give_up_excess() {
  uint32_t running = running_.load(std::memory_order_relaxed);
  while (running > capacity() + places_) {
    if (running_.compare_exchange_weak(running, running - 1, std::memory_order_relaxed))
      return true;
  }
  return false;
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

/// Takes the place of a worker that keeps it and has run nothing since the last call. Returns false
/// if there is none. REQUIRES: the lock is held.
bool RunGate::take_kept_place() {
  DCHECK(first_ != nullptr);  // the caller
  for (Pass* user = users_; user != nullptr; user = user->next_user_) {
    const uint32_t leaves = user->leaves_.load(std::memory_order_relaxed);
    if (std::exchange(user->seen_leaves_, leaves) != leaves) continue;
    Pass::Place kept = Pass::Place::kept;
    if (user->place_.compare_exchange_strong(kept, Pass::Place::none, std::memory_order_relaxed))
      return true;
  }
  return false;
}

/// Gives the caller's place to the first worker in line. Frees it if there is none, or if more
/// workers run than there are places.
void RunGate::pass_on() {
  DCHECK(running() != 0);
  Pass* next = nullptr;
  {
    const std::lock_guard guard(lock_);
    if (running() <= capacity()) next = remove_first();
    if (next == nullptr) {
      running_.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    next->is_granted_.store(kGranted, std::memory_order_relaxed);
  }
  // The pass may be gone. Then this call wakes no thread, or a thread that checks its own word.
  wake(next->is_granted_, 1);
}

void RunGate::stand_in_line(Pass& pass) {
  CHECK(pass.place_.load(std::memory_order_relaxed) == Pass::Place::none);
  const std::chrono::milliseconds pause = pause_behind(append(pass));
  for (;;) {
    bool is_first = false;
    {
      // Before the first sleep, too: a place may have become free before the worker was in line.
      const std::lock_guard guard(lock_);
      if (pass.is_granted_.load(std::memory_order_relaxed) == kGranted) break;
      is_first = first_ == &pass;
      if (is_first) {
        const bool is_patient = gate_time_ns() - pass.first_since_ns_ < ns_of(patience_);
        // The second call takes also the place of a worker that has run in between.
        if (take_place() || take_kept_place() ||
            (!is_patient && (take_kept_place() || add_place()))) {
          remove_first();
          pass.is_granted_.store(kGranted, std::memory_order_relaxed);
          break;
        }
      }
    }
    // If the word has changed since then, the call returns at once.
    wait_on(pass.is_granted_, kWaits, is_first ? kFirstPause : pause);
  }
  pass.place_.store(Pass::Place::used, std::memory_order_relaxed);
  pass.entered_at_ = extensions_.load(std::memory_order_relaxed);
}

/// Adds a place, and takes it. Returns true. REQUIRES: the lock is held.
bool RunGate::add_place() {
  capacity_.fetch_add(1, std::memory_order_relaxed);
  extensions_.fetch_add(1, std::memory_order_relaxed);
  running_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

/// Puts the worker at the end of the line. Returns how many workers are before it.
uint32_t RunGate::append(Pass& pass) {
  const std::lock_guard guard(lock_);
  pass.is_granted_.store(kWaits, std::memory_order_relaxed);
  pass.next_ = nullptr;
  if (first_ == nullptr) pass.first_since_ns_ = gate_time_ns();
  (first_ == nullptr ? first_ : last_->next_) = &pass;
  last_ = &pass;
  return waiting_.fetch_add(1, std::memory_order_relaxed);
}

/// Removes and returns the first worker in line, or returns null. REQUIRES: the lock is held.
RunGate::Pass* RunGate::remove_first() {
  Pass* const first = first_;
  DCHECK((first == nullptr) == (waiting() == 0));
  if (first == nullptr) return nullptr;
  first_ = first->next_;
  if (first_ != nullptr) first_->first_since_ns_ = gate_time_ns();
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  return first;
}

}  // namespace atolldb
