#include "coordinator/catalog/catalog.h"

#include <algorithm>
#include <cstring>

#include "engine/api/storage_lookup.h"
#include "engine/array/array.h"
#include "engine/mastertree/mastertree.h"
#include "engine/sequential/sequential.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/memory/state_names.h"

namespace atolldb {
namespace {

std::unexpected<Error> wrong(const StorageDefinition& definition, const std::string& what) {
  return make_error(ExitCode::usage, "storage \"" + definition.name + "\": " + what);
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

StorageState state_of(const StorageControl& storage) {
  // Relaxed: only the catalog changes the state. Readers on other threads load the state again,
  // with acquire, before they read other fields.
  return static_cast<StorageState>(storage.state.load(std::memory_order_relaxed));
}

/// Returns whether a storage may change from one state to the other.
bool is_transition(StorageState from, StorageState to) {
  switch (to) {
    case StorageState::free:
      return from == StorageState::creating || from == StorageState::dropping;
    case StorageState::creating:
      return from == StorageState::free;
    case StorageState::ready:
      return from == StorageState::creating;
    case StorageState::dropping:
      return from == StorageState::ready;
  }
  return false;
}

}  // namespace

Result<void> Catalog::check(const StorageDefinition& definition) {
  const std::string& name = definition.name;
  if (name.empty() || name.size() > kMaxStorageName ||
      !std::all_of(name.begin(), name.end(), is_name_character)) {
    return wrong(definition, "its name must have 1 to " + std::to_string(kMaxStorageName) +
                                 " letters, digits, \"_\", \".\" or \"-\"");
  }
  uint32_t max_payload = 0;
  switch (definition.type) {
    case StorageType::none:
      return wrong(definition, "its type must be array, mastertree, sequential or hash");
    case StorageType::array:
      max_payload = Array::kMaxPayloadBytes;
      if (definition.record_count == 0 || definition.record_count > Array::kMaxRecords) {
        return wrong(definition, std::to_string(definition.record_count) +
                                     " records: an array has 1 to " +
                                     std::to_string(Array::kMaxRecords) + ": give --records");
      }
      if (definition.payload_bytes == 0) {
        return wrong(definition, "0 bytes a record: an array's have 1 to " +
                                     std::to_string(max_payload) + ": give --payload-bytes");
      }
      break;
    case StorageType::mastertree:
    case StorageType::hash:
      max_payload = MasterTree::kMaxPayloadBytes;
      break;
    case StorageType::sequential:
      max_payload = Sequential::kMaxPayloadBytes;
      break;
  }
  if (definition.type != StorageType::array && definition.record_count != 0) {
    return wrong(definition, std::to_string(definition.record_count) +
                                 " records: only arrays have a fixed number: leave out --records");
  }
  if (definition.payload_bytes > max_payload) {
    return wrong(definition, std::to_string(definition.payload_bytes) +
                                 " bytes a record: more than the limit of " +
                                 std::to_string(max_payload) + " of type " +
                                 std::string(to_string(definition.type)) +
                                 ": lower --payload-bytes");
  }
  return {};
}

Result<uint32_t> Catalog::next_free_id() const {
  for (uint32_t id = last_id_ + 1; id <= last_id_ + kMaxStorages; ++id) {
    if (state_of(control_->storage(id)) == StorageState::free) return id;
  }
  return make_error(ExitCode::resources, "storages: all " + std::to_string(kMaxStorages) +
                                             " places are taken: drop one first");
}

StorageControl& Catalog::fill(uint32_t id, const StorageDefinition& definition) {
  CHECK(id != 0 && definition.name.size() <= kMaxStorageName);
  StorageControl& storage = control_->storage(id);
  publish(storage, StorageState::creating);
  storage.id = id;
  storage.type = definition.type;
  storage.payload_bytes = static_cast<uint32_t>(definition.payload_bytes);
  storage.record_count = definition.record_count;
  std::memset(storage.name, 0, sizeof(storage.name));
  std::memcpy(storage.name, definition.name.data(), definition.name.size());
  uint64_t operations_before = 0;
  for (const MetricsSegment* node : *metrics_) operations_before += slot_operations(*node, id);
  // Relaxed: the next change of the state publishes these words.
  storage.operations_before.store(operations_before, std::memory_order_relaxed);
  storage.root.volatile_word.store(0, std::memory_order_relaxed);
  storage.root.snapshot_word.store(0, std::memory_order_relaxed);
  storage.delta_root.volatile_word.store(0, std::memory_order_relaxed);
  storage.uses_delta.store(0, std::memory_order_relaxed);
  storage.root_max_removed_vid.store(0, std::memory_order_relaxed);
  CHECK(storage.root_lock.is_unused());
  return storage;
}

Result<void> Catalog::restore(uint32_t id, const StorageDefinition& definition) {
  last_id_ = std::max(last_id_, id);
  Result<void> checked = check(definition);
  if (checked &&
      (find(definition.name) != nullptr || state_of(control_->storage(id)) != StorageState::free)) {
    checked = make_error(ExitCode::corruption, "storage \"" + definition.name + "\", id " +
                                                   std::to_string(id) +
                                                   ": the DDL log creates it beside another one");
  }
  if (checked) publish(fill(id, definition), StorageState::ready);
  return checked;
}

Result<uint32_t> Catalog::create(const StorageDefinition& definition, const Persist& persist) {
  ATOLL_TRY(check(definition));
  if (find(definition.name) != nullptr) {
    return make_error(ExitCode::failed, "storage \"" + definition.name +
                                            "\": exists already: drop it or use another name");
  }
  const Result<uint32_t> id = next_free_id();
  if (!id) return id;
  CHECK(*id > last_id_);  // ids are never reused (R34)
  last_id_ = *id;
  StorageControl& storage = fill(*id, definition);
  if (const auto persisted = persist(storage); !persisted) {
    publish(storage, StorageState::free);
    return std::unexpected(persisted.error());
  }
  publish(storage, StorageState::ready);
  return *id;
}

Result<uint32_t> Catalog::hide(std::string_view name) {
  const StorageControl* found = find(name);
  if (found == nullptr) {
    return make_error(ExitCode::failed, "storage \"" + std::string(name) +
                                            "\": does not exist: `atoll storage ls` lists them");
  }
  publish(control_->storage(found->id), StorageState::dropping);
  return found->id;
}

void Catalog::free_slot(uint32_t id) { publish(control_->storage(id), StorageState::free); }

const StorageControl* Catalog::find(std::string_view name) const {
  return find_storage(*control_, name);
}

std::vector<const StorageControl*> Catalog::list() const {
  std::vector<const StorageControl*> storages;
  for (const StorageControl& storage : control_->storages) {
    // Acquire pairs with the release of publish: all fields are visible. In the state `creating`,
    // `fill` may still write them on the DDL thread.
    const auto state = static_cast<StorageState>(storage.state.load(std::memory_order_acquire));
    if (state == StorageState::ready || state == StorageState::dropping) {
      storages.push_back(&storage);
    }
  }
  return storages;
}

void Catalog::publish(StorageControl& storage, StorageState state) {
  CHECK(is_transition(state_of(storage), state));
  // Release pairs with the acquire of find_storage, which then sees all fields. seq_cst is for
  // `dropping`: this store precedes the coordinator's next load of the current epoch. A thread that
  // begins after that epoch cannot find the storage.
  storage.state.store(static_cast<uint32_t>(state), std::memory_order_seq_cst);
  control_->catalog_version.fetch_add(1, std::memory_order_release);
}

}  // namespace atolldb
