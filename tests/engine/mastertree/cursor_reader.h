// Reads the records of a cursor one by one, from next() or from batches of next_many(). Tests of
// scans choose the way at random, so both ways are compared with the same model.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "engine/mastertree/cursor.h"

namespace atolldb::test {

class CursorReader {
 public:
  /// `rows`: number of records in a batch; 0: no batches. With more than one row, the reader is
  /// ahead of its current record, and does not see later writes of the transaction to the rows.
  CursorReader(MasterTreeCursor& cursor, size_t rows)
      : cursor_(cursor),
        rows_(rows),
        payloads_(std::max<size_t>(rows, 1) * MasterTree::kMaxPayloadBytes),
        keys_(kMaxTreeKeyBytes) {}

  Status next() {
    if (rows_.empty()) return read_one();
    if (++at_ < count_) return Status::ok;
    at_ = 0;
    return cursor_.next_many({.rows = rows_,
                              .payloads = payloads_,
                              .stride = MasterTree::kMaxPayloadBytes,
                              .keys = keys_},
                             count_);
  }
  Bytes key() const { return rows_.empty() ? cursor_.key() : rows_[at_].key; }
  Bytes payload() const {
    const uint32_t bytes = rows_.empty() ? cursor_.payload_bytes() : rows_[at_].payload_bytes;
    return std::span(payloads_).subspan(at_ * size_t{MasterTree::kMaxPayloadBytes}, bytes);
  }
  const RecordRef& ref() { return rows_.empty() ? cursor_.ref() : cursor_.ref(rows_[at_]); }
  Vid vid() const { return rows_.empty() ? cursor_.vid() : rows_[at_].vid; }

 private:
  Status read_one() {
    const Status status = cursor_.next();
    return status == Status::ok ? cursor_.get(payloads_.data(), MasterTree::kMaxPayloadBytes)
                                : status;
  }

  MasterTreeCursor& cursor_;
  std::vector<ScanRow> rows_;
  std::vector<std::byte> payloads_;
  std::vector<std::byte> keys_;
  uint32_t at_ = 0;
  uint32_t count_ = 0;  // records in the batch
};

}  // namespace atolldb::test
