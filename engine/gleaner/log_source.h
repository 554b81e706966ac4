// What mappers hand to reducers, and reducers to composers: log records in *gleaned form*, sorted.
#pragma once

#include <cstdint>
#include <cstring>

#include "engine/log/log_record.h"
#include "shared/error.h"

namespace atolldb {

/// A log record in gleaned form is a LogRecord whose key orders like bytes (memcmp, the shorter one
/// first), whatever the storage:
///
///   array        the index, big-endian, 8 bytes
///   Master-tree  the key
///   sequential   [epoch 8][node 1][worker 1][ordinal 4][number of the append 2], big-endian: every
///                append has a key of its own
///
/// Sort order: (storage id, key, VID without flags). Lengths are multiples of 8 (LogRecord::bytes).
inline constexpr uint32_t kSequentialKeyBytes = 16;

/// A stream of gleaned records, in sort order: of one storage and one partition.
class LogSource {
 public:
  virtual ~LogSource() = default;
  /// The record at hand; valid until the next call of `advance`. Null: the stream has ended.
  virtual const LogRecord* current() const = 0;
  /// REQUIRES: current() is not null. Errors: those of reading a sorted run.
  virtual Result<void> advance() = 0;
};

}  // namespace atolldb
