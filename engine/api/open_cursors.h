// The cursors that an attempt of a procedure has open. A library names them by numbers.
#pragma once

#include <atoll/storages.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "engine/array/array.h"
#include "engine/mastertree/cursor.h"
#include "engine/sequential/sequential.h"
#include "engine/transaction/transaction.h"
#include "shared/base/status.h"

namespace atolldb {

class OpenCursors {
 public:
  /// Opens a cursor, and copies the bounds of the range. `cursor` gets its number, which is not 0.
  /// Errors: transaction_too_large for more than kMaxOpenCursors cursors; key_too_long for a bound
  /// of more than kMaxKeyBytes bytes; operation_not_supported for a bound or a backward scan of a
  /// hash storage. REQUIRES: the handle is of a storage.
  Status open(Transaction& txn, const atoll_api::abi::StorageHandle& storage,
              const atoll_api::abi::ScanRange& range, uint64_t& cursor);
  /// Copies the next row. Returns invalid_argument if there is no such cursor.
  Status next(uint64_t cursor, atoll_api::abi::ScanRow& row);
  /// Copies the next rows, at least one. Returns invalid_argument if there is no such cursor, or a
  /// buffer is too small.
  Status next_many(uint64_t cursor, atoll_api::abi::ScanRows& rows);
  /// Sets `place` to that of the current row of a Master-tree or a hash storage. Returns
  /// invalid_argument if there is no such cursor or no current row, and operation_not_supported for
  /// other storages.
  Status place_of(uint64_t cursor, atoll_api::abi::Place& place);
  /// Does nothing if there is no such cursor.
  void close(uint64_t cursor);
  void close_all();

 private:
  struct OpenCursor {
    uint64_t number = 0;  // 0: not open
    bool keys_only = false;
    bool is_hash = false;
    bool has_row = false;  // the latest call was `next`, and it has returned a row
    uint32_t array_payload_bytes = 0;
    uint32_t storage_id = 0;     // of a tree
    std::vector<std::byte> low;  // bounds, which the cursor refers to
    std::vector<std::byte> high;
    std::variant<std::monostate, ArrayCursor, MasterTreeCursor, SequentialCursor> cursor;
    std::array<ScanRow, 32> found;  // rows of a batch; a member, because each call would zero it

    Status next(ArrayCursor& cursor, atoll_api::abi::ScanRow& row) const;
    Status next(MasterTreeCursor& cursor, atoll_api::abi::ScanRow& row) const;
    Status next(SequentialCursor& cursor, atoll_api::abi::ScanRow& row) const;
    Status next(atoll_api::abi::ScanRow& row);
    Status next_batch(MasterTreeCursor& cursor, atoll_api::abi::ScanRows& rows);
    Status next_each(atoll_api::abi::ScanRows& rows);
    Status place_of(MasterTreeCursor& cursor, atoll_api::abi::Place& place) const;
    void start(Transaction& txn, const atoll_api::abi::StorageHandle& storage,
               const atoll_api::abi::ScanRange& range);
    void close();
  };

  OpenCursor* find(uint64_t cursor);

  // A closed cursor keeps its memory for the next one.
  std::array<std::unique_ptr<OpenCursor>, atoll_api::kMaxOpenCursors> cursors_;
  uint64_t opened_ = 0;
};

}  // namespace atolldb
