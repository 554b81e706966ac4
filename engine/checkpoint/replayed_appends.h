// Records of heaps, which a replay collects and appends at its end, in the order of VIDs.
//
// A scan returns a list in its order, and expects ascending epochs. Files are replayed in any
// order, so records are sorted first. The order of VIDs keeps that of every worker's appends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/format/log_record.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/error.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Copies of append records, collected by one thread of a replay.
class CollectedAppends {
 public:
  void add(const LogRecord& record);

  /// Records by storage id. They stay valid as long as the object, even if it is moved.
  const std::map<uint32_t, std::vector<const LogRecord*>>& records() const { return records_; }
  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kChunkBytes = size_t{1} << 20;

  std::byte* allocate(uint32_t bytes);

  std::map<uint32_t, std::vector<const LogRecord*>> records_;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  size_t used_ = kChunkBytes;  // bytes of the last chunk
  uint64_t bytes_ = 0;
};

/// All append records of one storage in the order of VIDs.
class SortedAppends {
 public:
  /// REQUIRES: `collected` outlives the object.
  SortedAppends(uint32_t storage_id, std::span<const CollectedAppends* const> collected);

  /// Returns part `number` of `parts`. Parts end where epochs end, so a list that gets one part has
  /// ascending epochs.
  std::span<const LogRecord* const> part(size_t number, size_t parts) const;
  size_t size() const { return records_.size(); }

 private:
  /// Returns the first position from `position` on at which another epoch begins.
  size_t round_up(size_t position) const;

  std::vector<const LogRecord*> records_;
};

/// Appends the records to the list of this worker. REQUIRES: the worker is between transactions.
/// The newest record of the list, if any, is not newer than the first of `records`.
Result<void> append_replayed(WorkerContext& worker, StorageControl& storage,
                             std::span<const LogRecord* const> records);

}  // namespace atolldb
