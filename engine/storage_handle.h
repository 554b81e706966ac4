// What a handle (Array, MasterTree, Sequential) knows of its storage.
#pragma once

#include <cstdint>

#include "engine/mutants.h"
#include "engine/transaction/transaction.h"
#include "shared/memory/control_layout.h"
#include "shared/status.h"

namespace atolldb {

class StorageHandle {
 public:
  explicit StorageHandle(StorageControl& control) : control_(&control), id_(control.id) {}

  StorageControl& control() const { return *control_; }
  uint32_t id() const { return id_; }

  /// First thing in every operation that looks for records: Transaction::check, and
  /// storage_not_found from the drop of the storage on (R34). A drop waits for all transactions
  /// that may have asked before it, so that pages and slot stay as they are until the end of one
  /// that was told ok.
  Status check(const Transaction& txn) const {
    const Status status = txn.check();
    return status == Status::ok ? check_storage() : status;
  }
  /// The same of an operation that goes on to volatile pages: Transaction::check_volatile. If
  /// it is not ok, ask whether the transaction reads a snapshot.
  Status check_volatile(const Transaction& txn) const {
    const Status status = txn.check_volatile();
    return status == Status::ok ? check_storage() : status;
  }
  /// The same of an operation of a transaction that reads a snapshot.
  Status check_snapshot(Transaction& txn, bool writes) const {
    const Status status = txn.check_snapshot(writes);
    return status == Status::ok ? check_storage() : status;
  }

 private:
  Status check_storage() const {
    // seq_cst, after the begin epoch: as in is_storage_ready. Acquire is part of it, and pairs with
    // the release that made the storage ready: its id is visible.
    const bool is_ready = control_->state.load(std::memory_order_seq_cst) ==
                          static_cast<uint32_t>(StorageState::ready);
    const bool is_usable = is_ready && control_->id == id_;
    return is_usable || mutant(Mutant::use_dropped_storage) ? Status::ok
                                                            : Status::storage_not_found;
  }

  StorageControl* control_;
  uint32_t id_;
};

}  // namespace atolldb
