// The catalog of storages in the control segment: its only writer. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/error.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

struct StorageDefinition {
  std::string name;
  StorageType type = StorageType::none;
  uint64_t payload_bytes = 0;  // array: size of a record; else: typical size, 0 = unknown
  uint64_t record_count = 0;   // array
};

class Catalog {
 public:
  explicit Catalog(ControlSegment& control) : control_(&control) {}

  /// Makes a creation durable; an error: it did not happen (R34).
  using Persist = std::function<Result<void>(const StorageControl& storage)>;

  /// The new storage's id. Usable by everybody when `persist` has returned.
  Result<uint32_t> create(const StorageDefinition& definition, const Persist& persist);
  /// A storage of an earlier incarnation, as its DDL log has it: usable at once.
  Result<void> restore(uint32_t id, const StorageDefinition& definition);
  /// Ids up to this one were given before: none is ever reused.
  void skip_ids(uint32_t last_id) { last_id_ = std::max(last_id_, last_id); }
  /// Hides the storage: nobody finds it any more. Its slot stays taken until `free_slot`.
  Result<uint32_t> hide(std::string_view name);
  /// REQUIRES: hidden, its pages are released, and no thread can still hold a handle of it.
  void free_slot(uint32_t id);

  /// Null when there is none of that name.
  const StorageControl* find(std::string_view name) const;
  std::vector<const StorageControl*> list() const;

 private:
  static Result<void> check(const StorageDefinition& definition);
  Result<uint32_t> next_free_id() const;
  StorageControl& fill(uint32_t id, const StorageDefinition& definition);
  void publish(StorageControl& storage, StorageState state);

  ControlSegment* control_;
  uint32_t last_id_ = 0;  // ids are never reused
};

}  // namespace atolldb
