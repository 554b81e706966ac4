// Sequential storage: append-only heap; every worker has a list of pages of its own (R17).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sequential/page.h"
#include "engine/storage_handle.h"
#include "engine/transaction/transaction.h"
#include "shared/memory/control_layout.h"
#include "shared/status.h"

namespace atolldb {

/// A light handle; copy it freely.
class Sequential {
 public:
  static constexpr uint32_t kMaxPayloadBytes = 2048;

  /// `storage` must be of type sequential and ready.
  explicit Sequential(StorageControl& storage) : storage_(storage) {}

  /// Applied at commit, after verification; conflicts with nobody but serializable scans.
  /// payload_too_long past kMaxPayloadBytes; transaction_too_large past
  /// Transaction::kMaxAppends appends in one transaction.
  Status append(Transaction& txn, std::span<const std::byte> payload) const;

  StorageControl& storage() const { return storage_.control(); }
  const StorageHandle& handle() const { return storage_; }

 private:
  StorageHandle storage_;
};

/// Full scan in the order of commit epochs [first_epoch, last_epoch]; within an epoch list by list,
/// in append order. Own pending appends come last. Registers every list's version word and what is
/// missing yet. What is in the snapshot is read there: it never changes. A transaction that reads a
/// snapshot finds what is there, and its own appends. Must not outlive the attempt of its
/// transaction.
class SequentialCursor {
 public:
  SequentialCursor(const Sequential& sequential, Transaction& txn, uint64_t first_epoch = 0,
                   uint64_t last_epoch = kMaxEpoch);

  /// Moves to the next record; end_of_scan when there is none.
  Status next();
  /// Of the current record; valid until the next call of next().
  std::span<const std::byte> payload() const { return payload_; }
  /// Commit epoch; 0 for an own pending append.
  uint64_t epoch() const { return epoch_; }

 private:
  /// In a worker's list, or in a run of pages of the snapshot.
  struct ListPosition {
    SequentialPage* page = nullptr;  // null: in the snapshot
    SnapshotPointer cold{};
    uint64_t cold_pages = 0;  // of the run, from this one on
    uint32_t index = 0;       // records passed on this page
    uint32_t offset = 0;
    uint32_t count = 0;       // when the page was opened
    uint64_t epoch = 0;       // of the record at hand
    bool is_settled = false;  // there is one
  };

  Status open();
  Status open_all(SnapshotPointer snapshot);
  Status open_snapshot(SnapshotPointer root);
  Status find_runs(SnapshotPointer root);
  Status open_list(const std::atomic<uint64_t>& word);
  Status settle(ListPosition& position, bool& ended);
  Status next_page(ListPosition& position, bool& ended);
  Status next_cold_page(ListPosition& position, bool& ended);
  Status hold_page(const ListPosition& position, SequentialPage*& page);
  Status take(ListPosition& position);
  static void skip(ListPosition& position, const SequentialRecord& record);

  StorageHandle storage_;
  Transaction* txn_;
  uint64_t first_epoch_;
  uint64_t last_epoch_;
  bool opened_ = false;
  uint32_t own_ = 0;
  std::vector<ListPosition> lists_;  // scans are not the transaction path of OLTP: may allocate
  uint64_t snapshot_epoch_ = 0;      // records up to it are in the snapshot
  std::vector<std::byte> cold_payload_;
  std::span<const std::byte> payload_;
  uint64_t epoch_ = 0;
};

}  // namespace atolldb
