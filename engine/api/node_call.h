// What the node's functions share: the checks of a call, keys as the tree stores them, and places.
#pragma once

#include <atoll/abi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <type_traits>

#include "engine/api/current_attempt.h"
#include "engine/api/storage_cast.h"
#include "engine/array/array.h"
#include "engine/hash/hash_key.h"
#include "engine/mastertree/mastertree.h"
#include "engine/sequential/sequential.h"
#include "engine/transaction/transaction.h"
#include "shared/base/check.h"

namespace atolldb {

template <typename Storage>
constexpr ApiStorageType type_of() {
  if (std::is_same_v<Storage, Array>) return ApiStorageType::array;
  return std::is_same_v<Storage, MasterTree> ? ApiStorageType::mastertree
                                             : ApiStorageType::sequential;
}

/// Returns whether the handle is of a Master-tree or a hash storage.
inline bool is_tree(const ApiHandle& handle) {
  return handle.type == ApiStorageType::mastertree || handle.type == ApiStorageType::hash;
}

/// Calls `use(transaction, storage)` if this thread runs the attempt, and the handle is of a
/// storage of this type.
template <typename Storage, typename Use>
inline ApiStatus with_storage(uint64_t attempt, const ApiHandle* handle, Use&& use) {
  DCHECK(handle != nullptr);
  const CurrentAttempt& current = current_attempt;
  if (!current.runs(attempt)) [[unlikely]]
    return ApiStatus::invalid_argument;
  if (handle->type != type_of<Storage>()) [[unlikely]]
    return ApiStatus::storage_not_found;
  DCHECK(current.transaction != nullptr);
  return to_api(use(*current.transaction, storage_in<Storage>(*handle)));
}

/// Calls `use(transaction, tree)` if this thread runs the attempt, and the handle is of a
/// Master-tree or a hash storage.
template <typename Use>
inline ApiStatus with_tree(uint64_t attempt, const ApiHandle* handle, Use&& use) {
  DCHECK(handle != nullptr);
  const CurrentAttempt& current = current_attempt;
  if (!current.runs(attempt)) [[unlikely]]
    return ApiStatus::invalid_argument;
  if (!is_tree(*handle)) [[unlikely]]
    return ApiStatus::storage_not_found;
  DCHECK(current.transaction != nullptr);
  return to_api(use(*current.transaction, storage_in<MasterTree>(*handle)));
}

// -- Keys --------------------------------------------------------------------------------------

/// The key of a call as the tree stores it.
class StoredKey {
 public:
  StoredKey(const ApiHandle* handle, ApiBytes key) : key_(to_engine(key)) {
    if (handle->type == ApiStorageType::hash) key_ = hashed_.emplace(key_).stored();
  }
  StoredKey(const StoredKey&) = delete;
  StoredKey& operator=(const StoredKey&) = delete;
  operator Bytes() const { return key_; }

 private:
  std::optional<HashKey> hashed_;
  Bytes key_;
};

/// Number of records that a call handles at once: as many as the engine's look-ups of many records.
inline constexpr size_t kCallBatch = 16;

/// Room for kCallBatch objects. An array would be cleared at each call, which takes longer than the
/// rest of many calls.
template <typename T>
class Room {
 public:
  /// Returns the first objects. REQUIRES: the caller assigns each before it reads it.
  std::span<T> first(size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    DCHECK(count <= kCallBatch);
    return {std::launder(reinterpret_cast<T*>(bytes_.data())), count};
  }

 private:
  alignas(T) std::array<std::byte, sizeof(T) * kCallBatch> bytes_;
};

/// The keys of a call as the tree stores them, kCallBatch at a time.
class StoredKeys {
 public:
  /// Takes the first keys. The result is valid until the next call.
  std::span<const Bytes> fill(const ApiHandle* handle, std::span<const ApiBytes> keys) {
    const size_t size = std::min(kCallBatch, keys.size());
    const std::span<Bytes> stored = keys_.first(size);
    for (size_t i = 0; i < size; ++i) stored[i] = to_engine(keys[i]);
    if (handle->type != ApiStorageType::hash) return stored;
    const std::span<HashKey> hashed = hashed_.first(size);
    for (size_t i = 0; i < size; ++i) {
      hashed[i].set(stored[i]);
      stored[i] = hashed[i].stored();
    }
    return stored;
  }

 private:
  Room<Bytes> keys_;
  Room<HashKey> hashed_;
};

// -- Places ------------------------------------------------------------------------------------

/// Makes a place of no record. The engine fills the ref in place, because a copy would stall on
/// these stores.
inline RecordRef& begin_place(ApiPlace& place) {
  static_assert(sizeof(RecordRef) == sizeof(place.node) && alignof(RecordRef) <= 8);
  static_assert(std::is_trivially_copyable_v<RecordRef>);
  place.attempt = CurrentAttempt::kNone;
  return *new (place.node) RecordRef;
}

/// Ends a place that begin_place has begun. `record`: index of a record of an array, or hash of the
/// caller's key (identity_of).
inline void end_place(ApiPlace& place, RecordRef& ref, uint32_t storage_id, uint64_t record) {
  DCHECK(static_cast<void*>(&ref) == place.node);
  ref.storage_id = storage_id;  // the ref of a record that is in no page has none
  DCHECK(current_attempt.number != CurrentAttempt::kNone);
  place.attempt = current_attempt.number;
  place.record = record;
}

/// Returns the record of a place, or null if the place is not one of this attempt and record.
inline const RecordRef* ref_in(const ApiPlace& place, uint64_t attempt, uint32_t storage_id,
                               uint64_t record) {
  DCHECK(attempt != CurrentAttempt::kNone);
  if (place.attempt != attempt || place.record != record) return nullptr;
  const RecordRef* const ref = std::launder(reinterpret_cast<const RecordRef*>(place.node));
  return ref->storage_id == storage_id ? ref : nullptr;
}

}  // namespace atolldb
