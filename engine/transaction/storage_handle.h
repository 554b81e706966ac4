// Base class of the storage handles (Array, MasterTree, Sequential).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/hooks/mutants.h"
#include "engine/transaction/transaction.h"
#include "shared/base/status.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Refers to a storage by its slot and id, and tells whether the storage still exists.
class StorageHandle {
 public:
  explicit StorageHandle(StorageControl& control) : control_(&control), id_(control.id) {}

  StorageControl& control() const { return *control_; }
  uint32_t id() const { return id_; }

  /// Every operation that looks for records calls this first. Counts `operations`, the number of
  /// records that it looks for, for metrics. Returns the status of Transaction::check, or
  /// storage_not_found once a drop of the storage has begun (R34). A drop waits for all
  /// transactions to which this function may have returned ok. So the pages and the slot of the
  /// storage stay unchanged until such a transaction ends.
  Status check(const Transaction& txn, size_t operations = 1) const {
    const Status status = txn.check();
    return status == Status::ok ? check_storage(txn, operations) : status;
  }
  /// Does the same as `check`, but uses Transaction::check_volatile, for an operation that
  /// continues in volatile pages. If the result is not ok, the caller tests whether the transaction
  /// reads a snapshot.
  Status check_volatile(const Transaction& txn, size_t operations = 1) const {
    const Status status = txn.check_volatile();
    return status == Status::ok ? check_storage(txn, operations) : status;
  }
  /// Does the same as `check`, for a transaction that reads a snapshot.
  Status check_snapshot(Transaction& txn, bool writes, size_t operations = 1) const {
    const Status status = txn.check_snapshot(writes);
    return status == Status::ok ? check_storage(txn, operations) : status;
  }
  /// Counts records that a scan has returned, or that a batch looks for. REQUIRES: the transaction
  /// has used the storage, and the worker has not begun another one since.
  void count_operations(const Transaction& txn, size_t operations) const {
    txn.worker().count_operations(id_, operations);
  }

 private:
  Status check_storage(const Transaction& txn, size_t operations) const {
    // seq_cst, after the store of the begin epoch: either this load sees a drop of the storage, or
    // the drop sees this thread's begin epoch. The load is also an acquire. It pairs with the
    // release that made the storage ready, so its id is visible.
    const bool is_ready = control_->state.load(std::memory_order_seq_cst) ==
                          static_cast<uint32_t>(StorageState::ready);
    const bool is_usable = is_ready && control_->id == id_;
    if (!is_usable && !fault::use_dropped_storage) return Status::storage_not_found;
    if (operations != 0) count_operations(txn, operations);
    return Status::ok;
  }

  StorageControl* control_;
  uint32_t id_;
};

/// Returns true if the storage is ready and its slot still holds the storage `id`. A thread calls
/// this after it has published a begin epoch and before it loads pages of the storage. A drop first
/// hides the storage, then waits for the begin epochs of such threads (R9, R34). Thread: any.
inline bool is_storage_ready(const StorageControl& storage, uint32_t id) {
  if (fault::walk_dropped_storages) return true;
  // seq_cst pairs with the store that hid the storage: either this load sees it, or the drop sees
  // the caller's begin epoch.
  return static_cast<StorageState>(storage.state.load(std::memory_order_seq_cst)) ==
             StorageState::ready &&
         storage.id == id;
}

}  // namespace atolldb
