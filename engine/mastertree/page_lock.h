// Scoped page and record locks of system transactions. A thread takes them in universal order, or
// only tries (R22).
#pragma once

#include <cstdint>

#include "engine/format/tree_page.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/descent.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/check.h"

namespace atolldb {

/// Returns the universal name of a root lock. Roots are not in a page pool, so node 255 (the
/// coordinator) and the storage id name them.
inline UniversalName root_lock_name(const StorageControl& storage) {
  return UniversalName::make(VolatilePointer::make(kMaxNodes, 0, storage.id % kMaxStorages), 0);
}

/// Returns the universal name of a page's lock.
inline UniversalName lock_name(const TreePage* page) {
  return UniversalName::make(page->self(), offsetof(TreePage, lock));
}
/// Returns whether the worker holds the lock of the page.
inline bool holds_page(const WorkerContext& worker, const TreePage* page) {
  return worker.holds(page->lock);
}

/// Lock of a page, a record or a storage root, released by the destructor.
class ScopedLock {
 public:
  ScopedLock() = default;
  ScopedLock(const ScopedLock&) = delete;
  ScopedLock& operator=(const ScopedLock&) = delete;
  ~ScopedLock() { unlock(); }

  /// Waits for the lock. Returns false if the cluster has failed. REQUIRES: apart from early locks,
  /// the caller holds no lock, or only locks before `name` in universal order. A record's lock
  /// comes after that of its page.
  bool lock(WorkerContext& worker, McsWord& word, UniversalName name) {
    if (!worker.locker().try_lock(word)) [[unlikely]] {
      // R105: the holder may wait for an early lock of this worker, or be this worker.
      worker.release_early_locks();
      if (worker.locker().lock(word, name) != Status::ok) return false;
    }
    return hold(worker, word);
  }
  /// Never waits. Returns false if another thread holds the lock or waits for it.
  bool try_lock(WorkerContext& worker, McsWord& word) {
    if (fault::wait_out_of_order) return lock(worker, word, UniversalName());
    while (!worker.locker().try_lock(word)) {
      // R105: it may be an early lock of this worker. Otherwise every retry would fail here.
      if (!worker.release_early_locks()) return false;
    }
    return hold(worker, word);
  }
  bool lock_page(WorkerContext& worker, TreePage* page) {
    return lock(worker, page->lock, lock_name(page));
  }
  bool try_lock_page(WorkerContext& worker, TreePage* page) { return try_lock(worker, page->lock); }
  /// Tries to take the lock that guards changes of the link's word.
  bool try_lock_holder(WorkerContext& worker, StorageControl& storage, const Link& link) {
    return try_lock(worker, link.holder != nullptr ? link.holder->lock : storage.root_lock);
  }
  void unlock() {
    if (word_ == nullptr) return;
    reach(SyncPoint::unlocking_page);
    worker_->locker().unlock(*word_);
    word_ = nullptr;
  }

 private:
  bool hold(WorkerContext& worker, McsWord& word) {
    DCHECK(word_ == nullptr);
    worker_ = &worker;
    word_ = &word;
    reach(SyncPoint::locked_page);
    return true;
  }

  WorkerContext* worker_ = nullptr;
  McsWord* word_ = nullptr;
};

/// Returns whether the holder is still in place and its word still leads to `page`. REQUIRES: the
/// holder's lock is held.
inline bool link_leads_to(const Link& link, const TreePage* page) {
  DCHECK(link.holder == nullptr || link.holder->lock.is_locked());
  if (link.holder != nullptr && link.holder->header.version().is_moved()) return false;
  return link.pointer->load_acquire() == page->self();
}

}  // namespace atolldb
