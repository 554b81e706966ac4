#include "engine/transaction/storage_ops.h"

namespace atolldb {
namespace {

/// Array records are never moved. A record that reads as relocated was evicted with its page (R8).
bool track_moved_in_array(WorkerContext& /*worker*/, RecordHead*& /*record*/,
                          uint16_t& /*payload_at*/) {
  return false;
}

/// Arrays delete nothing.
void record_erased_in_array(WorkerContext& /*worker*/, const RecordHead* /*record*/,
                          std::span<const std::byte> /*key*/) {}

}  // namespace

constinit const StorageOps kArrayOps = {track_moved_in_array, record_erased_in_array};

}  // namespace atolldb
