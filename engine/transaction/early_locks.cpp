#include "engine/transaction/early_locks.h"

#include <sched.h>

#include <algorithm>

#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

void EarlyLocks::plan(RecordHead* record, UniversalName name) {
  DCHECK(record != nullptr && !holds_any());
  uint32_t at = size_;
  while (at > 0 && name < locks_[at - 1].name) --at;
  const bool is_known = at > 0 && locks_[at - 1].name == name;
  if (is_known || size_ == kMost) return;
  for (uint32_t i = size_; i > at; --i) locks_[i] = locks_[i - 1];
  locks_[at] = {name, record};
  ++size_;
  DCHECK(at == 0 || locks_[at - 1].name < name);
}

bool EarlyLocks::take(uint32_t i, uint32_t& polls) {
  DCHECK(i < size_ && (held_ >> i) == 0);
  CHECK(i == 0 || locks_[i - 1].name < locks_[i].name);
  RecordHead& record = *locks_[i].record;
  uint32_t pauses = kFirstPauses;
  while (!locker_->try_lock_early(record.lock)) {
    if (polls == 0 || --polls == 0) return false;
    for (uint32_t pause = 0; pause < pauses; ++pause) spin_pause();
    // System call: the holder may be waiting for this core. The attempt has waited anyway.
    if (pauses != kFirstPauses) sched_yield();
    pauses = std::min(2 * pauses, kMostPauses);
  }
  held_ |= 1u << i;
  // The next attempt finds the record in another place, so the lock is of no use.
  if (record.load_acquire().is_relocated()) release_one(i);
  return holds(i);
}

bool EarlyLocks::take_over(UniversalName name) {
  for (uint32_t i = 0; i < size_; ++i) {
    if (!holds(i) || locks_[i].name != name) continue;
    // R106: from now on a verification fails because of this lock.
    locker_->end_early(locks_[i].record->lock);
    held_ &= ~(1u << i);
    return true;
  }
  return false;
}

void EarlyLocks::release_after(UniversalName name) {
  for (uint32_t i = 0; i < size_; ++i) {
    if (holds(i) && name < locks_[i].name) release_one(i);
  }
  DCHECK(!holds_after(name));
}

void EarlyLocks::release() {
  for (uint32_t i = 0; i < size_; ++i) {
    if (holds(i)) release_one(i);
  }
  DCHECK(!holds_any());
}

void EarlyLocks::release_one(uint32_t i) {
  DCHECK(holds(i));
  McsWord& lock = locks_[i].record->lock;
  held_ &= ~(1u << i);
  if (fault::unlock_before_early_mark_ends) {
    lock.holder.store(0, std::memory_order_seq_cst);
    reach(SyncPoint::unlocking_early);
    LockCode mark = kEarlyMark;
    lock.waiters.compare_exchange_strong(mark, 0, std::memory_order_seq_cst);
    return;
  }
  // R106: the mark ends before the next holder can take the lock.
  locker_->end_early(lock);
  reach(SyncPoint::unlocking_early);
  locker_->unlock(lock);
}

}  // namespace atolldb
