#include "shared/metrics/storage_metrics.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "shared/base/check.h"
#include "shared/memory/page_header.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

struct StorageSums {
  uint64_t operations = 0;
  uint64_t pages = 0;
  uint64_t copied_pages = 0;
  std::optional<uint64_t> records;
};

struct ReadyStorage {
  uint32_t id = 0;
  const StorageControl* control = nullptr;
};

/// Returns the storages that procedures can use, ascending by id.
std::vector<ReadyStorage> ready_storages_by_id(const ControlSegment& control) {
  std::vector<ReadyStorage> ready;
  for (const StorageControl& storage : control.storages) {
    // Acquire pairs with the release that made the storage ready: all fields are visible.
    const uint32_t state = storage.state.load(std::memory_order_acquire);
    if (state != static_cast<uint32_t>(StorageState::ready)) continue;
    ready.push_back({storage.id, &storage});
  }
  DCHECK(ready.size() <= kMaxStorages);
  std::ranges::sort(ready, {}, &ReadyStorage::id);
  return ready;
}

StorageSums sums_of_storage(const ReadyStorage& ready, const std::vector<StorageSpace>& spaces,
                            std::span<const MetricsSegment* const> nodes) {
  StorageSums sums;
  DCHECK(ready.control != nullptr);
  sums.operations = storage_operations(nodes, *ready.control);
  sums.copied_pages = ready.control->copied_pages.load(std::memory_order_relaxed);
  const auto space = std::ranges::lower_bound(spaces, ready.id, {}, &StorageSpace::id);
  if (space != spaces.end() && space->id == ready.id) {
    sums.pages = space->pages;
    sums.records = space->records;
  }
  if (ready.control->type == StorageType::array) sums.records = ready.control->record_count;
  return sums;
}

}  // namespace

void StorageSpaces::set(std::vector<StorageSpace> spaces) {
  CHECK(std::ranges::is_sorted(spaces, {}, &StorageSpace::id));
  const std::lock_guard guard(mutex_);
  spaces_ = std::move(spaces);
}

std::vector<StorageSpace> StorageSpaces::get() const {
  const std::lock_guard guard(mutex_);
  return spaces_;
}

void add_storages(MetricFamilies& families, const ControlSegment& control,
                  const StorageSpaces* spaces, std::span<const MetricsSegment* const> nodes) {
  const std::vector<StorageSpace> known =
      spaces == nullptr ? std::vector<StorageSpace>() : spaces->get();
  // By name: two samples with the same labels would make the scrape invalid. A name can occur twice
  // if a storage is dropped and created again during the loop.
  std::map<std::string, StorageSums> storages;
  for (const ReadyStorage& ready : ready_storages_by_id(control)) {
    const char* name = ready.control->name;
    const bool has_own = storages.size() < kMaxStorageSeries;
    const StorageSums sums = sums_of_storage(ready, known, nodes);
    StorageSums& sum =
        storages[has_own ? std::string(name, strnlen(name, kMaxStorageName)) : kOtherStorages];
    sum.operations += sums.operations;
    sum.pages += sums.pages;
    sum.copied_pages += sums.copied_pages;
    if (sums.records) sum.records = sum.records.value_or(0) + *sums.records;
  }
  if (storages.empty()) return;
  CHECK(storages.size() <= kMaxStorageSeries + 1);
  const auto add = [&](auto value) {
    for (const auto& [name, sums] : storages) families.sample(value(sums), {{"storage", name}});
  };
  families.counter("atoll_storage_operations_total",
                   "Records of the storage that transactions searched for, appended or scanned.");
  add([](const StorageSums& sums) { return sums.operations; });
  if (spaces != nullptr && spaces->has_pages()) {
    families.gauge("atoll_storage_snapshot_pages",
                   "Pages of the storage that the newest snapshot uses, also in older files.");
    add([](const StorageSums& sums) { return sums.pages; });
    families.gauge("atoll_storage_snapshot_bytes",
                   "Size of the pages of the storage that the newest snapshot uses.");
    add([](const StorageSums& sums) { return sums.pages * kPageBytes; });
    families.counter("atoll_storage_copied_pages_total",
                     "Snapshot pages of the storage that transactions have copied into memory.");
    add([](const StorageSums& sums) { return sums.copied_pages; });
  }
  const bool has_records = std::ranges::any_of(
      storages, [](const auto& storage) { return storage.second.records.has_value(); });
  if (!has_records) return;
  families.gauge(
      "atoll_storage_records",
      "Records of an array; of other storages as of the newest snapshot or checkpoint. Those of a "
      "Master-tree or hash storage are an estimate if transactions ran meanwhile.");
  for (const auto& [name, sums] : storages) {
    if (sums.records) families.sample(*sums.records, {{"storage", name}});
  }
}

}  // namespace atolldb
