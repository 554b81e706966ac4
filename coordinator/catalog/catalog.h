// The catalog of storages in the control segment. This class is its only writer. Thread: one at a
// time, unless a function says otherwise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

struct StorageDefinition {
  std::string name;
  StorageType type = StorageType::none;
  uint64_t payload_bytes = 0;  // array: size of a record; else typical size, 0: unknown
  uint64_t record_count = 0;   // arrays only
};

/// A storage as the catalog describes it.
struct StorageEntry {
  uint32_t id = 0;
  StorageType type = StorageType::none;
  std::string name;
  uint32_t payload_bytes = 0;
  uint64_t record_count = 0;
};

class Catalog {
 public:
  /// `metrics`: the segments of the nodes, none before they are attached. REQUIRES: both outlive
  /// the catalog.
  Catalog(ControlSegment& control, const std::vector<const MetricsSegment*>& metrics)
      : control_(&control), metrics_(&metrics) {}

  /// Makes a creation durable. After an error the storage does not exist (R34).
  using Persist = std::function<Result<void>(const StorageControl& storage)>;

  /// Creates a storage and returns its id. Other threads can find the storage after `persist` has
  /// succeeded.
  Result<uint32_t> create(const StorageDefinition& definition, const Persist& persist);
  /// Restores a storage of an earlier incarnation, as the DDL log describes it. On return its state
  /// is `ready`.
  Result<void> restore(uint32_t id, const StorageDefinition& definition);
  /// Records that earlier incarnations have used ids up to `last_id`. Ids are never reused.
  void skip_ids(uint32_t last_id) { last_id_ = std::max(last_id_, last_id); }
  /// Hides the storage, so that no thread finds its name. The slot stays taken until `free_slot`.
  Result<uint32_t> hide(std::string_view name);
  /// Frees the slot. REQUIRES: the storage is hidden, its pages are released, and no thread holds a
  /// handle of it.
  void free_slot(uint32_t id);

  /// Returns the ready storage of this name, or null if there is none. Thread: any.
  const StorageControl* find(std::string_view name) const;
  /// Returns the storages that are ready or being dropped. Thread: any.
  std::vector<const StorageControl*> list() const;

 private:
  static Result<void> check(const StorageDefinition& definition);
  Result<uint32_t> next_free_id() const;
  StorageControl& fill(uint32_t id, const StorageDefinition& definition);
  void publish(StorageControl& storage, StorageState state);

  ControlSegment* control_;
  const std::vector<const MetricsSegment*>* metrics_;
  uint32_t last_id_ = 0;  // last id in use; ids are never reused
};

}  // namespace atolldb
