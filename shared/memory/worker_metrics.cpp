#include "shared/memory/worker_metrics.h"

#include <algorithm>
#include <cstring>

namespace atolldb {

void SharedText::set(std::string_view text) {
  if (text.size() > kBytes) text.remove_prefix(text.size() - kBytes);
  char bytes[kBytes] = {};
  std::memcpy(bytes, text.data(), text.size());
  const uint64_t version = version_.load(std::memory_order_relaxed);
  CHECK(version % 2 == 0);  // even: the only writer is not in `set`
  version_.store(version + 1, std::memory_order_relaxed);
  for (size_t i = 0; i < words_.size(); ++i) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i * sizeof word, sizeof word);
    // Release: a reader that sees this word also sees the odd version, and discards the text.
    words_[i].store(word, std::memory_order_release);
  }
  // Release pairs with the acquire in `text`: the words are complete.
  version_.store(version + 2, std::memory_order_release);
}

std::string SharedText::text() const {
  constexpr int kTries = 100;  // `set` runs once per hang, so few tries suffice
  for (int i = 0; i < kTries; ++i) {
    const uint64_t version = version_.load(std::memory_order_acquire);
    char bytes[kBytes];
    for (size_t word = 0; word < words_.size(); ++word) {
      // Acquire pairs with the release in `set`: the second load of the version comes after it.
      const uint64_t value = words_[word].load(std::memory_order_acquire);
      std::memcpy(bytes + word * sizeof value, &value, sizeof value);
    }
    if (version % 2 != 0 || version_.load(std::memory_order_relaxed) != version) continue;
    return {bytes, static_cast<size_t>(std::find(bytes, bytes + kBytes, '\0') - bytes)};
  }
  return "a file";
}

uint64_t sum_counter(const MetricsSegment& metrics, Counter WorkerMetrics::* counter) {
  CHECK(counter != nullptr && metrics.slot_count <= kMaxWorkersPerNode + kAuxiliarySlots);
  uint64_t total = 0;
  for (uint32_t i = 0; i < metrics.slot_count; ++i) total += (metrics.worker(i).*counter).get();
  return total;
}

uint64_t sum_aborts(const MetricsSegment& metrics, Status reason) {
  CHECK(reason < Status::count_);
  uint64_t total = 0;
  for (uint32_t i = 0; i < metrics.slot_count; ++i) {
    total += metrics.worker(i).aborts[static_cast<uint32_t>(reason)].get();
  }
  return total;
}

uint64_t slot_operations(const MetricsSegment& metrics, uint32_t storage_id) {
  CHECK(metrics.slot_count <= kMaxWorkersPerNode + kAuxiliarySlots);
  uint64_t total = 0;
  for (uint32_t i = 0; i < metrics.slot_count; ++i) {
    total += metrics.worker(i).storage_operations[storage_id % kMaxStorages].get();
  }
  return total;
}

uint64_t storage_operations(std::span<const MetricsSegment* const> nodes,
                            const StorageControl& storage) {
  uint64_t total = 0;
  for (const MetricsSegment* metrics : nodes) total += slot_operations(*metrics, storage.id);
  // Relaxed: for display. The catalog stored the word before the state that the caller has seen.
  const uint64_t before = storage.operations_before.load(std::memory_order_relaxed);
  return total - std::min(total, before);
}

StorageCacheCounts& StorageCacheCounts::operator+=(const StorageCacheCounts& other) {
  pages += other.pages;
  pages_read += other.pages_read;
  evictions += other.evictions;
  return *this;
}

StorageCacheCounts storage_cache_counts(const MetricsSegment& metrics, uint32_t storage_id) {
  DCHECK(storage_id != 0);
  const StorageCacheMetrics& slot = metrics.storage_caches[storage_id % kMaxStorages];
  // Acquire pairs with the node's release: the counts are not those of an earlier storage.
  if (slot.storage_id.load(std::memory_order_acquire) != storage_id) return {};
  // Relaxed: for display; each count is valid on its own.
  return {slot.pages.load(std::memory_order_relaxed),
          slot.pages_read.load(std::memory_order_relaxed),
          slot.evictions.load(std::memory_order_relaxed)};
}

}  // namespace atolldb
