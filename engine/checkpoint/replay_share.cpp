#include "engine/checkpoint/replay_share.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/format/vid.h"
#include "engine/hooks/mutants.h"
#include "engine/mastertree/mastertree.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"

namespace atolldb {
namespace {

uint32_t part_of_key(const LogRecord& record, const StorageControl& storage, uint32_t count) {
  DCHECK(count >= 1 && storage.type != StorageType::sequential);
  // Keys that differ only in these last bytes are neighbours, and mostly in the same pages.
  constexpr size_t kNeighbourBytes = 2;
  const Bytes key = record.key_span();
  if (const auto index = array_index_in(storage, key)) {
    // The divisor is rounded up, so that the quotient is less than `count`.
    return static_cast<uint32_t>(*index / (storage.record_count / count + 1));
  }
  if (storage.type == StorageType::hash && !fault::replay_shares_by_version) {
    // The first slice is the hash of the key. Each part is a range of hashes.
    return static_cast<uint32_t>(slice_of(key) / (UINT64_MAX / count + 1));
  }
  uint64_t hash =
      identity_of(storage.id, key.first(key.size() - std::min(key.size(), kNeighbourBytes)));
  if (fault::replay_shares_by_version) hash ^= record.vid << 16;
  // The middle bits, because the upper ones select entries of other tables.
  return static_cast<uint32_t>((hash >> 16) % count);
}

}  // namespace

std::optional<uint64_t> array_index_in(const StorageControl& storage, Bytes key) {
  uint64_t index = 0;
  if (storage.type != StorageType::array || key.size() != sizeof index) return std::nullopt;
  std::memcpy(&index, key.data(), sizeof index);
  if (index >= storage.record_count) return std::nullopt;
  return index;
}

uint32_t ReplayShare::owner_of(const LogRecord& record, const StorageControl& storage) const {
  CHECK(number < count);
  if (count == 1) return 0;
  if (storage.type == StorageType::sequential) {
    DCHECK(record.key_bytes == 0 && last_epoch <= kMaxEpoch);
    const uint64_t epoch = std::min(Vid(record.vid).epoch(), last_epoch);
    return static_cast<uint32_t>(epoch * count / (last_epoch + 1));
  }
  return part_of_key(record, storage, count);
}

std::vector<uint32_t> divide_files(std::span<const SizedFile> files, uint32_t count) {
  CHECK(count >= 1);
  uint64_t total = 0;
  for (const SizedFile& file : files) total += file.bytes;
  const uint64_t part = total / count + (total % count != 0 ? 1 : 0);
  std::vector<size_t> order(files.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t file) { return files[file].bytes; });
  std::vector<uint64_t> loads(count);
  std::vector<uint32_t> owners(files.size(), count);
  const auto assign = [&](size_t file, uint32_t process) {
    owners[file] = process;
    loads[process] += files[file].bytes;
  };
  for (const size_t file : order) {
    const uint32_t own = files[file].node;
    if (own < count && loads[own] + files[file].bytes <= part) assign(file, own);
  }
  for (const size_t file : order) {
    if (owners[file] != count) continue;
    const auto least = std::ranges::min_element(loads);
    assign(file, static_cast<uint32_t>(least - loads.begin()));
  }
  CHECK(std::ranges::all_of(owners, [&](uint32_t owner) { return owner < count; }));
  return owners;
}

}  // namespace atolldb
