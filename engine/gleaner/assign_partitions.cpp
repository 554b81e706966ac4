#include "engine/gleaner/assign_partitions.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/format/array_page.h"
#include "engine/format/log_block.h"
#include "engine/format/tree_key.h"
#include "engine/log/log_files.h"
#include "engine/log/log_reader.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Opens the files of a stream.
Result<std::vector<std::unique_ptr<File>>> open_files(FileSystem& file_system,
                                                      const LogStream& stream) {
  std::vector<std::unique_ptr<File>> files;
  const std::string directory = node_directory(stream.directory, stream.node);
  ATOLL_ASSIGN(auto names, file_system.list(directory));
  for (const std::string& name : names) {
    const auto parsed = parse_log_file_name(name);
    if (!parsed || parsed->incarnation != stream.incarnation || parsed->logger != stream.logger) {
      continue;
    }
    ATOLL_ASSIGN(auto file, file_system.open_for_reading(path_in(directory, name)));
    files.push_back(std::move(file));
  }
  return files;
}

bool counts(const LogBlock& block, const PlannedStream& gleaned, uint64_t base_epoch) {
  const LogBlockHeader& header = block.header;
  return header.magic == kLogBlockMagic && header.version == kLogFormatVersion &&
         header.type == LogBlockType::records && header.length <= kLogBlockPayload &&
         header.incarnation == gleaned.stream.incarnation && header.epoch > base_epoch &&
         header.epoch <= gleaned.last_epoch && header.crc == crc_of(block) &&
         !defect_of_records(block);
}

/// Returns the record's key as a number with the order of gleaned keys. Returns nothing if the
/// record has no key, or belongs to none of `storages`.
std::optional<SampledKey> key_of(const LogRecord& record, uint16_t node,
                                 std::span<const PlannedStorage> storages) {
  if (record.type == LogType::filler) return std::nullopt;
  const auto found = std::ranges::lower_bound(storages, record.storage_id, {}, &PlannedStorage::id);
  if (found == storages.end() || found->id != record.storage_id) return std::nullopt;
  SampledKey sampled = {record.storage_id, node, 0};
  if (is_tree(found->type)) {
    sampled.key = slice_of(record.key_span());
  } else if (found->type == StorageType::array && record.key_bytes == sizeof sampled.key) {
    std::memcpy(&sampled.key, record.key(), sizeof sampled.key);
  } else {
    return std::nullopt;
  }
  return sampled;
}

/// Assigns partitions to the reducers of one snapshot job. Among equally suitable nodes, and within
/// a node, it prefers the reducer with the least load.
class Owners {
 public:
  explicit Owners(std::span<const ReducerPlace> reducers)
      : reducers_(reducers), load_(reducers.size()), is_taken_(reducers.size()) {}

  void next_storage() { is_taken_.assign(reducers_.size(), false); }

  /// Returns a reducer that has no partition of this storage yet. `records`: uses of the partition
  /// by node, of which `written` are records for the reducer.
  ReducerPlace take(const std::map<uint16_t, uint64_t>& records, uint64_t written) {
    std::optional<size_t> best;
    for (size_t i = 0; i < reducers_.size(); ++i) {
      if (is_taken_[i]) continue;
      if (!best || is_better(i, *best, records)) best = i;
    }
    CHECK(best && !is_taken_[*best]);
    is_taken_[*best] = true;
    load_[*best] += written;
    return reducers_[*best];
  }

 private:
  bool is_better(size_t one, size_t other, const std::map<uint16_t, uint64_t>& records) const {
    const auto uses = [&](size_t i) {
      const auto found = records.find(reducers_[i].node);
      return found == records.end() ? 0 : found->second;
    };
    if (uses(one) != uses(other)) return uses(one) > uses(other);
    return load_[one] < load_[other];
  }

  std::span<const ReducerPlace> reducers_;
  std::vector<uint64_t> load_;  // by reducer: sampled records so far, of all storages
  std::vector<bool> is_taken_;  // by reducer: has a partition of the current storage
};

/// Returns ascending boundaries within the sampled keys. So every partition has sampled keys.
std::vector<uint64_t> boundaries_of(const PlannedStorage& storage, std::span<const SampledKey> keys,
                                    uint64_t reducers) {
  const uint64_t wanted = std::min<uint64_t>(reducers, keys.size() / kSampledPerPartition);
  const uint64_t grain =
      storage.type == StorageType::array
          ? ArrayShape(storage.record_count, storage.payload_bytes).records_below_root_child()
          : uint64_t{1};
  CHECK(grain > 0);
  std::vector<uint64_t> boundaries;
  for (uint64_t i = 1; i < wanted; ++i) {
    const uint64_t key = keys[keys.size() * i / wanted].key;
    const uint64_t boundary = key / grain * grain;
    const uint64_t before = boundaries.empty() ? keys.front().key : boundaries.back();
    if (boundary > before) boundaries.push_back(boundary);
  }
  return boundaries;
}

std::string low_of(uint64_t key) {
  std::string low(sizeof key, '\0');
  put_slice(key, reinterpret_cast<std::byte*>(low.data()));
  return low;
}

/// Unit of votes. Samples of the log and of reads stand for different numbers of uses.
constexpr uint64_t kVotesPerSampledRecord = 256;

/// A sampled read, and its votes for its node.
struct WeightedRead {
  SampledKey key;
  uint64_t votes = 0;
};

/// Returns the sampled reads. A read has the votes of the pages that it stands for: as many as a
/// log record each.
std::vector<WeightedRead> weighted(std::span<const SampledReads> reads, uint64_t log_stride) {
  std::vector<WeightedRead> all;
  for (const SampledReads& of_node : reads) {
    CHECK(of_node.count >= of_node.keys.size() && log_stride != 0);
    if (of_node.keys.empty()) continue;
    const uint64_t votes =
        kVotesPerSampledRecord * of_node.count / of_node.keys.size() / log_stride;
    for (const SampledKey& key : of_node.keys) all.push_back({key, std::max<uint64_t>(1, votes)});
  }
  return all;
}

void assign(PlannedStorage& storage, std::span<const SampledKey> keys, uint64_t reducers,
            std::span<const WeightedRead> reads, Owners& owners) {
  storage.partitions.clear();
  if (storage.type == StorageType::sequential) return;
  const std::vector<uint64_t> boundaries = boundaries_of(storage, keys, reducers);
  std::vector<std::map<uint16_t, uint64_t>> used(boundaries.size() + 1);
  std::vector<uint64_t> written(used.size());
  CHECK(used.size() <= std::max<uint64_t>(1, reducers));
  storage.partitions.resize(used.size());
  for (size_t i = 0; i < boundaries.size(); ++i) {
    storage.partitions[i + 1].low = low_of(boundaries[i]);
  }
  const auto partition_of = [&](uint64_t key) {
    return static_cast<size_t>(std::ranges::upper_bound(boundaries, key) - boundaries.begin());
  };
  for (const SampledKey& key : keys) {
    used[partition_of(key.key)][key.node] += kVotesPerSampledRecord;
    ++written[partition_of(key.key)];
  }
  for (const WeightedRead& read : reads) {
    if (read.key.storage_id != storage.id) continue;
    DCHECK(read.votes != 0 && partition_of(read.key.key) < used.size());
    used[partition_of(read.key.key)][read.key.node] += read.votes;
  }
  // Orders partitions by their largest number of uses by one node, in descending order. The first
  // one would lose most locality on another node.
  std::vector<size_t> order(used.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto most = [&](size_t partition) {
    uint64_t count = 0;
    for (const auto& [node, uses] : used[partition]) count = std::max(count, uses);
    return count;
  };
  std::ranges::sort(order, {}, [&](size_t partition) {
    return std::pair(UINT64_MAX - most(partition), partition);
  });
  owners.next_storage();
  for (const size_t partition : order) {
    storage.partitions[partition].owner = owners.take(used[partition], written[partition]);
  }
  CHECK(storage.partitions.front().low.empty());
  for (size_t i = 1; i < storage.partitions.size(); ++i) {
    CHECK(storage.partitions[i - 1].low < storage.partitions[i].low);
  }
}

}  // namespace

Result<SampledLog> sample_keys(FileSystem& file_system, std::span<const PlannedStorage> storages,
                               std::span<const PlannedStream> streams, uint64_t base_epoch,
                               uint64_t blocks) {
  CHECK(std::ranges::is_sorted(storages, {}, &PlannedStorage::id));
  std::vector<std::vector<std::unique_ptr<File>>> files;
  uint64_t log_blocks = 0;
  for (const PlannedStream& gleaned : streams) {
    ATOLL_ASSIGN(auto opened, open_files(file_system, gleaned.stream));
    for (const std::unique_ptr<File>& file : opened) {
      ATOLL_ASSIGN(auto bytes, file->size());
      log_blocks += bytes / kLogBlockBytes;
    }
    files.push_back(std::move(opened));
  }
  const uint64_t stride = std::max<uint64_t>(1, log_blocks / std::max<uint64_t>(1, blocks));
  SampledLog sample;
  sample.stride = stride;
  const auto block = std::make_unique<LogBlock>();
  for (size_t i = 0; i < streams.size(); ++i) {
    for (const std::unique_ptr<File>& file : files[i]) {
      // Block 0 of a file is its header.
      for (uint64_t at = 1;; at += stride) {
        const auto into = std::as_writable_bytes(std::span(block.get(), 1));
        ATOLL_ASSIGN(const uint64_t count, file->read(at * kLogBlockBytes, into));
        if (count < kLogBlockBytes) break;
        if (!counts(*block, streams[i], base_epoch)) continue;
        for_each_record(*block, [&](const LogRecord& record) {
          const auto key = key_of(record, streams[i].stream.node, storages);
          if (key) sample.keys.push_back(*key);
        });
      }
    }
  }
  return sample;
}

void assign_partitions(std::vector<PlannedStorage>& storages, SampledLog sample,
                       std::span<const ReducerPlace> reducers,
                       std::span<const SampledReads> reads) {
  CHECK(!reducers.empty());
  const std::vector<WeightedRead> votes = weighted(reads, sample.stride);
  std::ranges::sort(sample.keys, {}, [](const SampledKey& key) {
    return std::tuple(key.storage_id, key.key, key.node);
  });
  Owners owners(reducers);
  for (PlannedStorage& storage : storages) {
    const auto keys =
        std::ranges::equal_range(sample.keys, storage.id, {}, &SampledKey::storage_id);
    assign(storage, {keys.begin(), keys.end()}, reducers.size(), votes, owners);
  }
}

}  // namespace atolldb
