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

/// Lock blocks of one system transaction. They are numbered from
/// WorkerContext::first_system_block(), after the blocks of the write set.
enum SystemBlock : uint32_t {
  kHolderBlock = 0,  // lock of the link's holder, or the root lock
  kPageBlock = 1,
  kFirstRecordBlock = 2,   // locks of the records of a border page
  kFirstChildBlock = 200,  // locks of the pages that a merge replaces
};
static_assert(kFirstRecordBlock + kBorderSlotBound < kFirstChildBlock);

/// Returns the universal name of a root lock. Roots are not in a page pool, so node 255 (the
/// coordinator) and the storage id name them.
inline UniversalName root_lock_name(const StorageControl& storage) {
  return UniversalName::make(VolatilePointer::make(kMaxNodes, 0, storage.id % kMaxStorages), 0);
}

/// Returns the universal name of a page's lock.
inline UniversalName lock_name(const TreePage* page) {
  return UniversalName::make(page->self(), offsetof(PageHeader, lock));
}
/// Returns whether the worker holds the lock of the page with this system block.
inline bool holds_page(const WorkerContext& worker, const TreePage* page, uint32_t block) {
  return worker.holds(worker.first_system_block() + block, page->header.lock, lock_name(page));
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
  bool lock(WorkerContext& worker, McsWord& word, uint32_t block, UniversalName name) {
    const uint32_t index = worker.first_system_block() + block;
    if (!worker.locker().try_lock(word, index, name)) [[unlikely]] {
      // R105: the holder may wait for an early lock of this worker, or be this worker.
      worker.release_early_locks();
      if (worker.locker().lock(word, index, name) != Status::ok) return false;
    }
    return hold(worker, word, index);
  }
  /// Never waits. Returns false if another thread holds the lock or waits for it.
  bool try_lock(WorkerContext& worker, McsWord& word, uint32_t block, UniversalName name) {
    if (fault::wait_out_of_order) return lock(worker, word, block, name);
    const uint32_t index = worker.first_system_block() + block;
    while (!worker.locker().try_lock(word, index, name)) {
      // R105: it may be an early lock of this worker. Otherwise every retry would fail here.
      if (!worker.release_early_locks()) return false;
    }
    return hold(worker, word, index);
  }
  bool lock_page(WorkerContext& worker, TreePage* page, uint32_t block) {
    return lock(worker, page->header.lock, block, lock_name(page));
  }
  bool try_lock_page(WorkerContext& worker, TreePage* page, uint32_t block) {
    return try_lock(worker, page->header.lock, block, lock_name(page));
  }
  /// Tries to take the lock that guards changes of the link's word.
  bool try_lock_holder(WorkerContext& worker, StorageControl& storage, const Link& link) {
    if (link.holder != nullptr) return try_lock_page(worker, link.holder, kHolderBlock);
    return try_lock(worker, storage.root_lock, kHolderBlock, root_lock_name(storage));
  }
  void unlock() {
    if (word_ == nullptr) return;
    reach(SyncPoint::unlocking_page);
    worker_->locker().unlock(*word_, block_);
    word_ = nullptr;
  }

 private:
  bool hold(WorkerContext& worker, McsWord& word, uint32_t index) {
    DCHECK(word_ == nullptr && index < worker.first_system_block() + kSystemLockBlocks);
    worker_ = &worker;
    word_ = &word;
    block_ = index;
    reach(SyncPoint::locked_page);
    return true;
  }

  WorkerContext* worker_ = nullptr;
  McsWord* word_ = nullptr;
  uint32_t block_ = 0;
};

/// Returns whether the holder is still in place and its word still leads to `page`. REQUIRES: the
/// holder's lock is held.
inline bool link_leads_to(const Link& link, const TreePage* page) {
  DCHECK(link.holder == nullptr || link.holder->header.lock.is_locked());
  if (link.holder != nullptr && link.holder->header.version().is_moved()) return false;
  return link.pointer->load_acquire() == page->self();
}

}  // namespace atolldb
