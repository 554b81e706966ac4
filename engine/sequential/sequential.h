// Sequential storage: an append-only heap with a page list per worker (R17).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/format/sequential_page.h"
#include "engine/transaction/storage_handle.h"
#include "engine/transaction/transaction.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/status.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Appends records to a sequential storage. A light handle that is cheap to copy.
class Sequential {
 public:
  static constexpr uint32_t kMaxPayloadBytes = 2048;

  /// REQUIRES: `storage` is ready and of type sequential.
  explicit Sequential(StorageControl& storage) : storage_(storage) {}

  /// Plans an append; the commit applies it after verification. It conflicts only with serializable
  /// scans. Errors: payload_too_long for more than kMaxPayloadBytes bytes; transaction_too_large
  /// for more than Transaction::kMaxAppends appends in one transaction.
  Status append(Transaction& txn, std::span<const std::byte> payload) const;

  StorageControl& storage() const { return storage_.control(); }
  const StorageHandle& handle() const { return storage_; }

 private:
  StorageHandle storage_;
};

/// Scans the records with commit epochs in [first_epoch, last_epoch], in the order of epochs.
/// Within an epoch it returns list after list, each in append order. Own pending appends come last.
/// The cursor registers the version word of every list, and the null words of lists that do not
/// exist yet. Records that are in the snapshot never change, so the cursor reads them there. A
/// transaction that reads a snapshot gets the snapshot's records and its own appends. REQUIRES: the
/// attempt of its transaction has not ended.
class SequentialCursor {
 public:
  SequentialCursor(const Sequential& sequential, Transaction& txn, uint64_t first_epoch = 0,
                   uint64_t last_epoch = kMaxEpoch);

  /// Moves to the next record. Returns end_of_scan if there is none.
  Status next();
  /// Payload of the current record; valid until the next call of next(). Empty after end_of_scan.
  std::span<const std::byte> payload() const { return payload_; }
  /// Commit epoch of the current record; 0 for an own pending append, and after end_of_scan.
  uint64_t epoch() const { return epoch_; }

  /// Returns the number of lists and runs that the scan merges now, without runs that it has not
  /// reached yet. A record costs at most one request for a snapshot page, and as many comparisons
  /// as the logarithm of this number.
  size_t open_positions() const { return open_.size(); }

 private:
  /// A run of snapshot pages that the scan has not reached yet.
  struct RunAhead {
    SnapshotPointer first_page;
    uint64_t pages = 0;
    uint64_t first_epoch = 0;
    size_t place = 0;  // order in the root pages; the newest run has 0
  };
  /// A position in a worker's list, or in a run of snapshot pages.
  struct ListPosition {
    SequentialPage* page = nullptr;  // null: the position is in the snapshot
    SnapshotPointer cold{};
    uint64_t cold_pages = 0;  // pages left in the run after this one
    size_t rank = 0;          // order within an epoch
    uint32_t index = 0;       // number of records before the position in the page
    uint32_t offset = 0;
    uint32_t count = 0;       // records in the page when it was opened
    uint64_t epoch = 0;       // epoch of the record at the position
    bool is_settled = false;  // there is a record at the position
  };

  Status move();
  Status open();
  Status open_all(SnapshotPointer snapshot);
  Status open_snapshot(SnapshotPointer root);
  Status find_runs(SnapshotPointer root);
  Status open_list(const std::atomic<uint64_t>& word);
  Status merge_lists();
  Status open_reached_runs();
  Status find_first_page(ListPosition& position);
  Status settle_last();
  Status settle(ListPosition& position, bool& ended);
  Status settle_cold(ListPosition& position, bool& ended);
  Status next_page(ListPosition& position, bool& ended);
  Status load_cold(SnapshotPointer pointer, const SequentialPage*& page);
  Status take_first();
  Status take_cold(ListPosition& position);
  static void skip(ListPosition& position, const SequentialRecord& record);
  static bool comes_later(const ListPosition& a, const ListPosition& b) {
    return a.epoch != b.epoch ? a.epoch > b.epoch : a.rank > b.rank;
  }

  StorageHandle storage_;
  Transaction* txn_;
  uint64_t first_epoch_;
  uint64_t last_epoch_;
  bool opened_ = false;
  uint32_t own_ = 0;
  // These vectors may allocate: scans are not on the OLTP path.
  std::vector<RunAhead> ahead_;     // ordered by their first epochs, the next one last
  std::vector<ListPosition> open_;  // a heap: the position of the next record is the first
  size_t next_rank_ = 0;            // rank of the next run that is opened
  bool last_is_taken_ = false;      // the last of open_ is not in the heap; its record was taken
  uint64_t snapshot_epoch_ = 0;     // records up to this epoch are in the snapshot
  std::vector<std::byte> cold_payload_;
  std::span<const std::byte> payload_;
  uint64_t epoch_ = 0;
};

/// Retires every page of a dropped storage (R34).
void release_sequential(WorkerContext& worker, StorageControl& storage);

}  // namespace atolldb
