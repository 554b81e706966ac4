#include "engine/api/batch_functions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "engine/api/current_attempt.h"
#include "engine/api/node_call.h"
#include "engine/mastertree/prefetch.h"
#include "engine/transaction/cold_batch.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

using Wanted = atoll_api::abi::Wanted;

/// Calls `use(first, some)` for kCallBatch elements at a time. `first`: index of the first of them.
/// Stops at a status other than ok, and returns it.
template <typename T, typename Use>
Status in_call_batches(std::span<const T> all, Use&& use) {
  for (size_t first = 0; first < all.size(); first += kCallBatch) {
    const Status status = use(first, all.subspan(first, std::min(kCallBatch, all.size() - first)));
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

}  // namespace

ApiStatus array_get_many(uint64_t attempt, const ApiHandle* array, const uint64_t* indexes,
                         size_t count, void* out, size_t out_bytes) {
  return with_storage<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    DCHECK(own.payload_bytes() != 0);
    if (count > out_bytes / own.payload_bytes()) return Status::invalid_argument;
    return own.get_many(txn, std::span(indexes, count), out);
  });
}

ApiStatus array_find_many(uint64_t attempt, const ApiHandle* array, const uint64_t* indexes,
                          size_t count, uint32_t offset, uint32_t bytes, bool for_update,
                          ApiPlace* places) {
  return with_storage<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    if (offset + uint64_t{bytes} > own.payload_bytes()) return Status::out_of_range;
    // The engine stores refs one after the other, and places have more members.
    Room<RecordRef> room;
    return in_call_batches(std::span(indexes, count), [&](size_t first, auto some) {
      const std::span<RecordRef> refs = room.first(some.size());
      const Status found =
          for_update ? own.find_many_for_update(txn, some, refs) : own.find_many(txn, some, refs);
      if (found != Status::ok) return found;
      for (size_t i = 0; i < some.size(); ++i) {
        Array::prefetch(refs[i], offset, bytes);
        RecordRef& ref = begin_place(places[first + i]);
        ref = refs[i];
        end_place(places[first + i], ref, own.handle().id(), some[i]);
      }
      return Status::ok;
    });
  });
}

ApiStatus tree_get_many(uint64_t attempt, const ApiHandle* tree, const ApiBytes* keys, size_t count,
                        void* out, uint32_t stride, ApiStatus* results) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    StoredKeys stored;
    std::array<Status, kCallBatch> found{};
    return in_call_batches(std::span(keys, count), [&](size_t first, auto some) {
      std::byte* const to = static_cast<std::byte*>(out) + first * stride;
      const Status status = own.get_many(txn, stored.fill(tree, some), to, stride, found);
      size_t i = 0;
      for (; i < some.size() && !is_abort(found[i]); ++i) results[first + i] = to_api(found[i]);
      if (is_abort(status)) std::fill(results + first + i, results + count, to_api(status));
      return status;
    });
  });
}

ApiStatus tree_get_many_for_update(uint64_t attempt, const ApiHandle* tree, const ApiBytes* keys,
                                   size_t count, void* out, uint32_t stride,
                                   uint32_t* payload_bytes, ApiStatus* results, ApiPlace* places) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    StoredKeys stored;
    const uint32_t id = own.handle().id();
    return in_call_batches(std::span(keys, count), [&](size_t first, auto some) {
      const std::span<const Bytes> wanted = stored.fill(tree, some);
      own.prefetch(txn, wanted);
      for (size_t i = 0; i < some.size(); ++i) {
        const size_t at = first + i;
        uint32_t length = 0;
        RecordRef& ref = begin_place(places[at]);
        const Status status = own.get_for_update(
            txn, wanted[i], static_cast<std::byte*>(out) + at * stride, stride, length, ref);
        if (is_abort(status)) {
          std::fill(results + at, results + count, to_api(status));
          return status;
        }
        results[at] = to_api(status);
        if (payload_bytes != nullptr) payload_bytes[at] = length;
        if (status != Status::ok) continue;
        end_place(places[at], ref, id, identity_of(id, to_engine(some[i])));
      }
      return Status::ok;
    });
  });
}

ApiStatus tree_insert_many(uint64_t attempt, const ApiHandle* tree, const ApiBytes* keys,
                           const ApiBytes* payloads, size_t count) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    StoredKeys stored;
    Room<Bytes> room;
    return in_call_batches(std::span(keys, count), [&](size_t first, auto some) {
      const std::span<Bytes> values = room.first(some.size());
      for (size_t i = 0; i < some.size(); ++i) values[i] = to_engine(payloads[first + i]);
      return own.insert_many(txn, stored.fill(tree, some), values);
    });
  });
}

// -- Prefetches --------------------------------------------------------------------------------

ApiStatus array_prefetch(uint64_t attempt, const ApiHandle* array, const uint64_t* indexes,
                         size_t count) {
  return with_storage<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    own.prefetch(txn, std::span(indexes, count));
    return Status::ok;
  });
}

ApiStatus tree_prefetch(uint64_t attempt, const ApiHandle* tree, const ApiBytes* keys, size_t count,
                        uint32_t records) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    StoredKeys stored;
    return in_call_batches(std::span(keys, count), [&](size_t /*first*/, auto some) {
      own.prefetch(txn, stored.fill(tree, some), records);
      return Status::ok;
    });
  });
}

void prefetch_array(uint64_t run, const ApiHandle* array, const uint64_t* indexes, size_t count) {
  const CurrentAttempt& current = current_attempt;
  if (!current.prefetches(run) || array->type != ApiStorageType::array) return;
  DCHECK(current.transaction != nullptr);
  const Array& own = storage_in<Array>(*array);
  own.prefetch(*current.transaction, std::span(indexes, count), 0, own.payload_bytes());
}

void prefetch_tree(uint64_t run, const ApiHandle* tree, const ApiBytes* keys, size_t count,
                   uint32_t records) {
  const CurrentAttempt& current = current_attempt;
  if (!current.prefetches(run) || !is_tree(*tree)) return;
  DCHECK(current.transaction != nullptr);
  StoredKeys stored;
  for (size_t first = 0; first < count; first += kCallBatch) {
    prefetch_ahead(*current.transaction, storage_in<MasterTree>(*tree),
                   stored.fill(tree, std::span(keys + first, count - first)), records);
  }
}

namespace {

/// The records that a library wants. Its Wanted may have fewer members than that of this node, or
/// more. The node ignores members that it does not know, because a prefetch is a hint.
class WantedRecords {
 public:
  /// `bytes`: size of one Wanted of the library. REQUIRES: bytes >= kLeastWantedBytes.
  WantedRecords(const Wanted* first, size_t count, size_t bytes)
      : first_(reinterpret_cast<const std::byte*>(first)), count_(count), bytes_(bytes) {
    DCHECK(bytes >= atoll_api::abi::kLeastWantedBytes);
  }
  size_t size() const { return count_; }
  Wanted operator[](size_t i) const {
    DCHECK(i < count_);
    Wanted wanted;  // members that the library does not have keep their defaults
    std::memcpy(&wanted, first_ + i * bytes_, std::min(bytes_, sizeof wanted));
    return wanted;
  }

 private:
  const std::byte* first_;
  size_t count_;
  size_t bytes_;
};

Status check_wanted(const Wanted& wanted) {
  DCHECK(wanted.storage != nullptr);
  if (is_tree(*wanted.storage)) return Status::ok;
  if (wanted.storage->type != ApiStorageType::array) return Status::storage_not_found;
  const uint32_t payload_bytes = storage_in<Array>(*wanted.storage).payload_bytes();
  return wanted.offset + uint64_t{wanted.bytes} <= payload_bytes ? Status::ok
                                                                 : Status::out_of_range;
}

/// Adds the missing snapshot pages of these records to a batch. REQUIRES: check_wanted(wanted).
void add_cold_pages(Transaction& txn, const Wanted& wanted, ColdBatch& batch) {
  if (!is_tree(*wanted.storage)) {
    storage_in<Array>(*wanted.storage).add_cold(txn, {wanted.indexes, wanted.count}, batch);
    return;
  }
  for (const ApiBytes key : std::span(wanted.keys, wanted.count)) {
    const StoredKey stored(wanted.storage, key);
    if (Bytes(stored).size() > MasterTree::kMaxKeyBytes) continue;  // there is no such record
    add_cold(txn, storage_in<MasterTree>(*wanted.storage), stored, batch);
  }
}

/// Prefetches cache lines. Waits for no device. REQUIRES: check_wanted(wanted).
void prefetch_lines_of(Transaction& txn, const Wanted& wanted) {
  if (!is_tree(*wanted.storage)) {
    storage_in<Array>(*wanted.storage)
        .prefetch(txn, {wanted.indexes, wanted.count}, wanted.offset, wanted.bytes);
    return;
  }
  StoredKeys stored;
  for (size_t first = 0; first < wanted.count; first += kCallBatch) {
    const std::span rest(wanted.keys + first, wanted.count - first);
    prefetch_ahead(txn, storage_in<MasterTree>(*wanted.storage), stored.fill(wanted.storage, rest),
                   wanted.records);
  }
}

}  // namespace

ApiStatus prefetch_wanted(uint64_t run, const Wanted* wanted, size_t count, size_t wanted_bytes) {
  const CurrentAttempt& current = current_attempt;
  const bool is_attempt = current.runs(run);
  if (!is_attempt && !current.prefetches(run)) return ApiStatus::invalid_argument;
  if (wanted_bytes < atoll_api::abi::kLeastWantedBytes) return ApiStatus::invalid_argument;
  DCHECK(current.transaction != nullptr);
  const WantedRecords all(wanted, count, wanted_bytes);
  for (size_t i = 0; i < all.size(); ++i) {
    const Status status = check_wanted(all[i]);
    if (status != Status::ok) return to_api(status);
  }
  Transaction& txn = *current.transaction;
  // The pages of all storages are read at the same time. A prefetch function must not wait for
  // them, because the transaction that runs now is about to commit.
  if (is_attempt) {
    ColdBatch batch(txn.worker());
    if (batch.is_wanted()) {
      for (size_t i = 0; i < all.size(); ++i) add_cold_pages(txn, all[i], batch);
    }
  }
  for (size_t i = 0; i < all.size(); ++i) prefetch_lines_of(txn, all[i]);
  return ApiStatus::ok;
}

}  // namespace atolldb
