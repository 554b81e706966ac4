// The functions of the node that procedure libraries call. Each checks that the calling thread runs
// the attempt, and that the storage is of the function's type. The engine checks everything else.
#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <span>

#include "engine/api/current_attempt.h"
#include "engine/api/procedure_attempt.h"
#include "engine/api/storage_cast.h"
#include "engine/api/storage_lookup.h"
#include "engine/hash/hash_key.h"
#include "engine/mastertree/prefetch.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

using ApiNumber = atoll_api::NumberType;

using ApiHandle = atoll_api::abi::StorageHandle;
using ApiBytes = atoll_api::Bytes;
using ApiPlace = atoll_api::abi::Place;
using ApiStatus = atoll_api::Status;
using ApiStorageType = atoll_api::abi::StorageType;

constexpr bool has_same_statuses() {
  for (uint32_t i = 0; i <= kStatusCount; ++i) {
    if (to_string(static_cast<Status>(i)) != to_string(static_cast<ApiStatus>(i))) return false;
    if (is_abort(static_cast<Status>(i)) != is_abort(static_cast<ApiStatus>(i))) return false;
  }
  return true;
}
// These checks fail if a constant of the public API differs from that of the engine.
static_assert(has_same_statuses() && kStatusCount == atoll_api::kStatusCount);
static_assert(Array::kMaxPayloadBytes == atoll_api::kMaxArrayPayloadBytes);
static_assert(MasterTree::kMaxKeyBytes == atoll_api::kMaxKeyBytes);
static_assert(MasterTree::kMaxPayloadBytes == atoll_api::kMaxPayloadBytes);
static_assert(Sequential::kMaxPayloadBytes == atoll_api::kMaxPayloadBytes);
static_assert(static_cast<uint32_t>(StorageType::array) ==
              static_cast<uint32_t>(ApiStorageType::array));
static_assert(static_cast<uint32_t>(StorageType::mastertree) ==
              static_cast<uint32_t>(ApiStorageType::mastertree));
static_assert(static_cast<uint32_t>(StorageType::sequential) ==
              static_cast<uint32_t>(ApiStorageType::sequential));
static_assert(static_cast<uint32_t>(kLastStorageType) ==
              static_cast<uint32_t>(ApiStorageType::hash));
static_assert(HashKey::kMaxKeyBytes == atoll_api::kMaxHashKeyBytes);
static_assert(static_cast<uint8_t>(IncrementType::i32) == static_cast<uint8_t>(ApiNumber::i32));
static_assert(static_cast<uint8_t>(IncrementType::f64) == static_cast<uint8_t>(ApiNumber::f64));

template <typename Storage>
constexpr ApiStorageType type_of() {
  if (std::is_same_v<Storage, Array>) return ApiStorageType::array;
  return std::is_same_v<Storage, MasterTree> ? ApiStorageType::mastertree
                                             : ApiStorageType::sequential;
}

/// Calls `use(transaction, storage)` if this thread runs the attempt, and the handle is of a
/// storage of this type.
template <typename Storage, typename Use>
inline ApiStatus with(uint64_t attempt, const ApiHandle* handle, Use&& use) {
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
  if (handle->type != ApiStorageType::mastertree && handle->type != ApiStorageType::hash)
      [[unlikely]]
    return ApiStatus::storage_not_found;
  DCHECK(current.transaction != nullptr);
  return to_api(use(*current.transaction, storage_in<MasterTree>(*handle)));
}

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

/// Calls a function that may allocate. User code has its own frames above, perhaps compiled without
/// exceptions, so none may pass it.
template <typename Use>
ApiStatus guarded(Use&& use) noexcept {
  try {
    return use();
  } catch (const std::exception&) {
    return ApiStatus::procedure_failed;
  }
}

/// Lengths of the engine have 32 bits. Returns a length that the engine refuses, too, for all
/// others.
uint32_t length_of(ApiBytes bytes) {
  constexpr uint32_t kTooLong = std::numeric_limits<uint32_t>::max();
  return bytes.size() < kTooLong ? static_cast<uint32_t>(bytes.size()) : kTooLong;
}

// -- Places ------------------------------------------------------------------------------------

/// Makes a place of no record. The engine stores the ref into the place itself: a copy would wait
/// for its stores.
RecordRef& begin_place(ApiPlace& place) {
  static_assert(sizeof(RecordRef) == sizeof(place.node) && alignof(RecordRef) <= 8);
  static_assert(std::is_trivially_copyable_v<RecordRef>);
  place.attempt = CurrentAttempt::kNone;
  return *new (place.node) RecordRef;
}

void end_place(ApiPlace& place, RecordRef& ref, uint32_t storage_id, uint64_t record) {
  DCHECK(static_cast<void*>(&ref) == place.node);
  ref.storage_id = storage_id;  // the ref of a record that is in no page has none
  DCHECK(current_attempt.number != CurrentAttempt::kNone);
  place.attempt = current_attempt.number;
  place.record = record;
}

/// Returns the record of a place, or null if the place is not one of this attempt and record.
const RecordRef* ref_in(const ApiPlace& place, uint64_t attempt, uint32_t storage_id,
                        uint64_t record) {
  DCHECK(attempt != CurrentAttempt::kNone);
  if (place.attempt != attempt || place.record != record) return nullptr;
  const RecordRef* const ref = std::launder(reinterpret_cast<const RecordRef*>(place.node));
  return ref->storage_id == storage_id ? ref : nullptr;
}

// -- Context -----------------------------------------------------------------------------------

bool is_current(uint64_t attempt) { return current_attempt.runs(attempt); }

ApiStatus set_output(uint64_t attempt, ApiBytes output) {
  if (!current_attempt.runs(attempt)) return ApiStatus::invalid_argument;
  DCHECK(current_attempt.output != nullptr);
  return guarded([&] {
    current_attempt.output->assign(output.begin(), output.end());
    return ApiStatus::ok;
  });
}

ApiStatus set_message(uint64_t attempt, ApiBytes message) {
  if (!current_attempt.runs_or_loads(attempt)) return ApiStatus::invalid_argument;
  DCHECK(current_attempt.message != nullptr);
  return guarded([&] {
    current_attempt.message->assign(message.text());
    return ApiStatus::ok;
  });
}

template <typename Storage>
uint32_t put_storage(StorageControl& control, ApiHandle& found) {
  return (new (found.node) Storage(control))->handle().id();
}

bool fill_handle(StorageControl& control, ApiStorageType type, ApiHandle& found) {
  CHECK(type != ApiStorageType::none);
  // The slot may have got a storage of another type meanwhile, as below.
  if (type != static_cast<ApiStorageType>(control.type)) return false;
  ApiHandle handle;
  handle.type = type;
  handle.payload_bytes = control.payload_bytes;
  handle.record_count = control.record_count;
  uint32_t id = 0;
  if (type == ApiStorageType::array) {
    id = put_storage<Array>(control, handle);
  } else if (type == ApiStorageType::mastertree || type == ApiStorageType::hash) {
    id = put_storage<MasterTree>(control, handle);
  } else {
    id = put_storage<Sequential>(control, handle);
  }
  // A load holds no begin epoch, so the slot may have got another storage meanwhile. Its state or
  // its id differs then.
  if (!is_storage_ready(control, id)) return false;
  found = handle;
  return true;
}

ApiStatus find_storage_of(uint64_t attempt, ApiBytes name, ApiStorageType type, ApiHandle* found) {
  const CurrentAttempt& current = current_attempt;
  if (!current.runs_or_loads(attempt)) return ApiStatus::invalid_argument;
  CHECK(current.control != nullptr && found != nullptr);
  if (type == ApiStorageType::none || type > ApiStorageType::hash) {
    return ApiStatus::invalid_argument;
  }
  StorageControl* const control =
      find_storage(*current.control, name.text(), static_cast<StorageType>(type));
  if (control != nullptr && fill_handle(*control, type, *found)) return ApiStatus::ok;
  return guarded([&] {
    constexpr std::string_view kTypes[] = {"", "array", "mastertree", "sequential", "hash"};
    if (current.message->empty()) {
      current.message->append("storage \"").append(name.text()).append("\" of type ");
      current.message->append(kTypes[static_cast<size_t>(type)]).append(": there is none");
    }
    return ApiStatus::storage_not_found;
  });
}

// -- Arrays ------------------------------------------------------------------------------------

ApiStatus array_get(uint64_t attempt, const ApiHandle* array, uint64_t index, uint32_t offset,
                    uint32_t count, void* out) {
  return with<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    return own.get(txn, index, offset, count, out);
  });
}

ApiStatus array_get_for_update(uint64_t attempt, const ApiHandle* array, uint64_t index,
                               uint32_t offset, uint32_t count, void* out, ApiPlace* place) {
  return with<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    RecordRef& ref = begin_place(*place);
    const Status status = own.get_for_update(txn, index, offset, count, out, ref);
    if (status == Status::ok) end_place(*place, ref, own.handle().id(), index);
    return status;
  });
}

ApiStatus array_get_many(uint64_t attempt, const ApiHandle* array, const uint64_t* indexes,
                         size_t count, void* out, size_t out_bytes) {
  return with<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    DCHECK(own.payload_bytes() != 0);
    if (count > out_bytes / own.payload_bytes()) return Status::invalid_argument;
    return own.get_many(txn, std::span(indexes, count), out);
  });
}

ApiStatus array_prefetch(uint64_t attempt, const ApiHandle* array, const uint64_t* indexes,
                         size_t count) {
  return with<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    own.prefetch(txn, std::span(indexes, count));
    return Status::ok;
  });
}

ApiStatus array_update(uint64_t attempt, const ApiHandle* array, uint64_t index, uint32_t offset,
                       ApiBytes bytes) {
  return with<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    return own.update(txn, index, offset, length_of(bytes), bytes.data());
  });
}

ApiStatus array_update_at(uint64_t attempt, const ApiHandle* array, const ApiPlace* place,
                          uint32_t offset, ApiBytes bytes) {
  return with<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    const RecordRef* const ref = ref_in(*place, attempt, own.handle().id(), place->record);
    if (ref == nullptr) return Status::invalid_argument;
    return own.update(txn, *ref, place->record, offset, length_of(bytes), bytes.data());
  });
}

ApiStatus array_increment(uint64_t attempt, const ApiHandle* array, uint64_t index, uint32_t offset,
                          ApiNumber type, const void* delta) {
  return with<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    return own.increment(txn, index, offset, static_cast<IncrementType>(type), delta);
  });
}

// -- Master-trees ------------------------------------------------------------------------------

ApiStatus tree_get(uint64_t attempt, const ApiHandle* tree, ApiBytes key, void* out,
                   uint32_t capacity, uint32_t* payload_bytes) {
  *payload_bytes = 0;
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    return own.get(txn, StoredKey(tree, key), out, capacity, *payload_bytes);
  });
}

ApiStatus tree_get_range(uint64_t attempt, const ApiHandle* tree, ApiBytes key, uint32_t offset,
                         uint32_t count, void* out) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    return own.get_range(txn, StoredKey(tree, key), offset, count, out);
  });
}

ApiStatus tree_get_for_update(uint64_t attempt, const ApiHandle* tree, ApiBytes key, void* out,
                              uint32_t capacity, uint32_t* payload_bytes, ApiPlace* place) {
  *payload_bytes = 0;
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    RecordRef& ref = begin_place(*place);
    const Status status =
        own.get_for_update(txn, StoredKey(tree, key), out, capacity, *payload_bytes, ref);
    const uint32_t id = own.handle().id();
    if (status == Status::ok) end_place(*place, ref, id, identity_of(id, to_engine(key)));
    return status;
  });
}

constexpr size_t kKeyBatch = 16;  // as many as MasterTree::prefetch handles at once

/// Copies keys in batches, because the engine has its own type for them.
class KeyBatch {
 public:
  std::span<const Bytes> fill(const ApiHandle* handle, const ApiBytes* keys, size_t count) {
    const size_t size = std::min(kKeyBatch, count);
    for (size_t i = 0; i < size; ++i) {
      keys_[i] = to_engine(keys[i]);
      if (handle->type != ApiStorageType::hash) continue;
      hashed_[i].set(keys_[i]);
      keys_[i] = hashed_[i].stored();
    }
    return std::span<const Bytes>(keys_).first(size);
  }

 private:
  std::array<Bytes, kKeyBatch> keys_;
  std::array<HashKey, kKeyBatch> hashed_;
};

ApiStatus tree_get_many(uint64_t attempt, const ApiHandle* tree, const ApiBytes* keys, size_t count,
                        void* out, uint32_t stride, ApiStatus* results) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    KeyBatch batch;
    std::array<Status, kKeyBatch> found{};
    for (size_t first = 0; first < count; first += kKeyBatch) {
      const auto some = batch.fill(tree, keys + first, count - first);
      std::byte* const to = static_cast<std::byte*>(out) + first * stride;
      const Status status = own.get_many(txn, some, to, stride, found);
      for (size_t i = 0; i < some.size(); ++i) results[first + i] = to_api(found[i]);
      if (status != Status::ok) return status;
    }
    return Status::ok;
  });
}

ApiStatus tree_prefetch(uint64_t attempt, const ApiHandle* tree, const ApiBytes* keys, size_t count,
                        uint32_t records) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    KeyBatch batch;
    for (size_t first = 0; first < count; first += kKeyBatch) {
      own.prefetch(txn, batch.fill(tree, keys + first, count - first), records);
    }
    return Status::ok;
  });
}

ApiStatus tree_insert(uint64_t attempt, const ApiHandle* tree, ApiBytes key, ApiBytes payload) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    return own.insert(txn, StoredKey(tree, key), to_engine(payload));
  });
}

ApiStatus tree_upsert(uint64_t attempt, const ApiHandle* tree, ApiBytes key, ApiBytes payload) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    return own.upsert(txn, StoredKey(tree, key), to_engine(payload));
  });
}

ApiStatus tree_update(uint64_t attempt, const ApiHandle* tree, ApiBytes key, ApiBytes payload) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    return own.update(txn, StoredKey(tree, key), to_engine(payload));
  });
}

ApiStatus tree_update_range(uint64_t attempt, const ApiHandle* tree, ApiBytes key, uint32_t offset,
                            ApiBytes bytes) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    return own.update_range(txn, StoredKey(tree, key), offset, to_engine(bytes));
  });
}

const RecordRef* tree_ref(const ApiPlace& place, uint64_t attempt, const MasterTree& tree,
                          ApiBytes key) {
  const uint32_t id = tree.handle().id();
  return ref_in(place, attempt, id, identity_of(id, to_engine(key)));
}

ApiStatus tree_update_at(uint64_t attempt, const ApiHandle* tree, const ApiPlace* place,
                         ApiBytes key, uint32_t offset, ApiBytes bytes) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    const RecordRef* const ref = tree_ref(*place, attempt, own, key);
    return ref == nullptr
               ? Status::invalid_argument
               : own.update_range(txn, *ref, StoredKey(tree, key), offset, to_engine(bytes));
  });
}

ApiStatus tree_increment(uint64_t attempt, const ApiHandle* tree, ApiBytes key, uint32_t offset,
                         ApiNumber type, const void* delta) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    return own.increment(txn, StoredKey(tree, key), offset, static_cast<IncrementType>(type),
                         delta);
  });
}

ApiStatus tree_add(uint64_t attempt, const ApiHandle* tree, ApiBytes key, uint32_t offset,
                   ApiNumber type, const void* delta) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    return own.add(txn, StoredKey(tree, key), offset, static_cast<IncrementType>(type), delta);
  });
}

ApiStatus tree_remove(uint64_t attempt, const ApiHandle* tree, ApiBytes key) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    return own.erase(txn, StoredKey(tree, key));
  });
}

ApiStatus tree_remove_at(uint64_t attempt, const ApiHandle* tree, const ApiPlace* place,
                         ApiBytes key) {
  return with_tree(attempt, tree, [&](Transaction& txn, const MasterTree& own) {
    const RecordRef* const ref = tree_ref(*place, attempt, own, key);
    return ref == nullptr ? Status::invalid_argument : own.erase(txn, *ref, StoredKey(tree, key));
  });
}

// -- Sequential storages -----------------------------------------------------------------------

ApiStatus sequential_append(uint64_t attempt, const ApiHandle* sequential, ApiBytes payload) {
  return with<Sequential>(attempt, sequential, [&](Transaction& txn, const Sequential& own) {
    return own.append(txn, to_engine(payload));
  });
}

// -- Cursors -----------------------------------------------------------------------------------

ApiStatus scan_open(uint64_t attempt, const ApiHandle* storage,
                    const atoll_api::abi::ScanRange* range, uint64_t* cursor) {
  if (!current_attempt.runs(attempt)) return ApiStatus::invalid_argument;
  if (storage->type == ApiStorageType::none) return ApiStatus::storage_not_found;
  return guarded([&] {
    return to_api(
        cursors_of_attempt().open(*current_attempt.transaction, *storage, *range, *cursor));
  });
}

ApiStatus scan_next(uint64_t attempt, uint64_t cursor, atoll_api::abi::ScanRow* row) {
  const CurrentAttempt& current = current_attempt;
  if (!current.runs(attempt) || current.cursors == nullptr) {
    row->key_bytes = row->value_bytes = 0;
    return ApiStatus::invalid_argument;
  }
  return guarded([&] { return to_api(current.cursors->next(cursor, *row)); });
}

ApiStatus scan_next_many(uint64_t attempt, uint64_t cursor, atoll_api::abi::ScanRows* rows) {
  const CurrentAttempt& current = current_attempt;
  rows->count = 0;
  if (!current.runs(attempt) || current.cursors == nullptr) return ApiStatus::invalid_argument;
  return guarded([&] { return to_api(current.cursors->next_many(cursor, *rows)); });
}

void scan_close(uint64_t attempt, uint64_t cursor) {
  const CurrentAttempt& current = current_attempt;
  if (current.runs(attempt) && current.cursors != nullptr) current.cursors->close(cursor);
}

// -- Prefetch functions ------------------------------------------------------------------------

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
  const bool is_tree =
      tree->type == ApiStorageType::mastertree || tree->type == ApiStorageType::hash;
  if (!current.prefetches(run) || !is_tree) return;
  DCHECK(current.transaction != nullptr);
  KeyBatch batch;
  for (size_t first = 0; first < count; first += kKeyBatch) {
    prefetch_ahead(*current.transaction, storage_in<MasterTree>(*tree),
                   batch.fill(tree, keys + first, count - first), records);
  }
}

constexpr atoll_api::abi::NodeFunctions kNodeFunctions = {
    .abi_major = atoll_api::abi::kAbiMajor,
    .abi_minor = atoll_api::abi::kAbiMinor,
    .is_current = is_current,
    .set_output = set_output,
    .set_message = set_message,
    .find_storage = find_storage_of,
    .array_get = array_get,
    .array_get_for_update = array_get_for_update,
    .array_get_many = array_get_many,
    .array_prefetch = array_prefetch,
    .array_update = array_update,
    .array_update_at = array_update_at,
    .array_increment = array_increment,
    .tree_get = tree_get,
    .tree_get_range = tree_get_range,
    .tree_get_for_update = tree_get_for_update,
    .tree_get_many = tree_get_many,
    .tree_prefetch = tree_prefetch,
    .tree_insert = tree_insert,
    .tree_upsert = tree_upsert,
    .tree_update = tree_update,
    .tree_update_range = tree_update_range,
    .tree_update_at = tree_update_at,
    .tree_increment = tree_increment,
    .tree_remove = tree_remove,
    .tree_remove_at = tree_remove_at,
    .sequential_append = sequential_append,
    .scan_open = scan_open,
    .scan_next = scan_next,
    .scan_close = scan_close,
    .prefetch_array = prefetch_array,
    .prefetch_tree = prefetch_tree,
    .scan_next_many = scan_next_many,
    .tree_add = tree_add,
};

}  // namespace

const atoll_api::abi::NodeFunctions& node_functions() { return kNodeFunctions; }

}  // namespace atolldb
