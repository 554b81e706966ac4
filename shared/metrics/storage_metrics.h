// Metrics of the coordinator by storage: operations, records, and pages of the newest snapshot.
// Clusters with checkpoints have the records of the newest checkpoint, and no pages.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "shared/memory/control_layout.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

class MetricFamilies;

/// Limit of the values of the label `storage` in these families, without kOtherStorages. The oldest
/// storages have samples of their own, so no sample changes its meaning when a storage is made.
inline constexpr uint32_t kMaxStorageSeries = 256;
/// Label of the sums over all further storages.
inline constexpr const char* kOtherStorages = "other";

/// A storage in the newest snapshot or checkpoint.
struct StorageSpace {
  uint32_t id = 0;
  uint64_t pages = 0;  // pages of this storage that the snapshot uses (R67); 0 in a checkpoint
  std::optional<uint64_t> records{};  // nothing: they are not counted
  bool is_estimate = false;           // `records` is not exact
};

/// The storages of the newest snapshot or checkpoint, local to the coordinator's process. Thread:
/// any.
class StorageSpaces {
 public:
  StorageSpaces() = default;
  /// `has_pages`: the storages are those of snapshots, not of checkpoints.
  explicit StorageSpaces(bool has_pages) : has_pages_(has_pages) {}
  bool has_pages() const { return has_pages_; }
  /// `spaces`: ascending by id.
  void set(std::vector<StorageSpace> spaces);
  std::vector<StorageSpace> get() const;

 private:
  const bool has_pages_ = true;
  mutable std::mutex mutex_;
  std::vector<StorageSpace> spaces_;  // guarded by mutex_
};

/// Adds the families of the ready storages. `spaces`: null without a log. `nodes`: segments of all
/// nodes.
void add_storages(MetricFamilies& families, const ControlSegment& control,
                  const StorageSpaces* spaces, std::span<const MetricsSegment* const> nodes);

}  // namespace atolldb
