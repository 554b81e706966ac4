// The functions of the node that procedure libraries call. Each checks that the calling thread runs
// the attempt, and that the storage is of the function's type. The engine checks everything else.
#include <exception>
#include <limits>
#include <new>
#include <span>

#include "engine/api/batch_functions.h"
#include "engine/api/current_attempt.h"
#include "engine/api/node_call.h"
#include "engine/api/procedure_attempt.h"
#include "engine/api/storage_lookup.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

using ApiNumber = atoll_api::NumberType;

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
  return with_storage<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    return own.get(txn, index, offset, count, out);
  });
}

ApiStatus array_get_for_update(uint64_t attempt, const ApiHandle* array, uint64_t index,
                               uint32_t offset, uint32_t count, void* out, ApiPlace* place) {
  return with_storage<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    RecordRef& ref = begin_place(*place);
    const Status status = own.get_for_update(txn, index, offset, count, out, ref);
    if (status == Status::ok) end_place(*place, ref, own.handle().id(), index);
    return status;
  });
}

ApiStatus array_get_at(uint64_t attempt, const ApiHandle* array, const ApiPlace* place,
                       uint32_t offset, uint32_t count, void* out) {
  return with_storage<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    const RecordRef* const ref = ref_in(*place, attempt, own.handle().id(), place->record);
    if (ref == nullptr) return Status::invalid_argument;
    if (place->record >= own.record_count()) return Status::out_of_range;
    return own.get(txn, *ref, offset, count, out);
  });
}

ApiStatus array_update(uint64_t attempt, const ApiHandle* array, uint64_t index, uint32_t offset,
                       ApiBytes bytes) {
  return with_storage<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    return own.update(txn, index, offset, length_of(bytes), bytes.data());
  });
}

ApiStatus array_update_at(uint64_t attempt, const ApiHandle* array, const ApiPlace* place,
                          uint32_t offset, ApiBytes bytes) {
  return with_storage<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
    const RecordRef* const ref = ref_in(*place, attempt, own.handle().id(), place->record);
    if (ref == nullptr) return Status::invalid_argument;
    return own.update(txn, *ref, place->record, offset, length_of(bytes), bytes.data());
  });
}

ApiStatus array_increment(uint64_t attempt, const ApiHandle* array, uint64_t index, uint32_t offset,
                          ApiNumber type, const void* delta) {
  return with_storage<Array>(attempt, array, [&](Transaction& txn, const Array& own) {
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
  return with_storage<Sequential>(
      attempt, sequential,
      [&](Transaction& txn, const Sequential& own) { return own.append(txn, to_engine(payload)); });
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

ApiStatus scan_place(uint64_t attempt, uint64_t cursor, ApiPlace* place) {
  const CurrentAttempt& current = current_attempt;
  if (!current.runs(attempt) || current.cursors == nullptr) return ApiStatus::invalid_argument;
  return guarded([&] { return to_api(current.cursors->place_of(cursor, *place)); });
}

void scan_close(uint64_t attempt, uint64_t cursor) {
  const CurrentAttempt& current = current_attempt;
  if (current.runs(attempt) && current.cursors != nullptr) current.cursors->close(cursor);
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
    .array_find_many = array_find_many,
    .array_get_at = array_get_at,
    .tree_get_many_for_update = tree_get_many_for_update,
    .tree_insert_many = tree_insert_many,
    .scan_place = scan_place,
    .prefetch_wanted = prefetch_wanted,
};

}  // namespace

const atoll_api::abi::NodeFunctions& node_functions() { return kNodeFunctions; }

}  // namespace atolldb
