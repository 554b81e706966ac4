// Streams of sorted log records in *gleaned form*: from mappers to reducers, and from reducers to
// composers.
#pragma once

#include <cstdint>
#include <cstring>

#include "engine/format/log_record.h"
#include "shared/base/error.h"

namespace atolldb {

/// A log record in gleaned form is a LogRecord whose key has byte order (memcmp, a prefix first)
/// for all storage types:
///
///  array        the index, big-endian, 8 bytes
///  Master-tree  the key
///  sequential   [epoch 8][node 1][worker 1][ordinal 4][number of the append 2], big-endian: every
///               append has a key of its own
///
/// Sort order: (storage id, key, VID without flags). Lengths are multiples of 8 (LogRecord::bytes).
inline constexpr uint32_t kSequentialKeyBytes = 16;

/// A stream of gleaned records of one storage and one partition, in sort order.
class LogSource {
 public:
  virtual ~LogSource() = default;
  /// Returns the current record, valid until the next call of `advance`, or null at the end.
  virtual const LogRecord* current() const = 0;
  /// Moves to the next record.
  /// REQUIRES: current() is not null.
  /// Errors: those of reading a sorted run.
  virtual Result<void> advance() = 0;
};

}  // namespace atolldb
