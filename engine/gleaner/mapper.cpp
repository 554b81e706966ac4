#include "engine/gleaner/mapper.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/gleaner/gleaned_record.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

constexpr uint32_t kNoPlace = UINT32_MAX;

/// Number of records that are prefetched ahead while records are copied in sort order. The order of
/// their addresses is random.
constexpr size_t kPrefetchAhead = 8;

void add(std::atomic<uint64_t>& counter, uint64_t value) {
  // There is one writer, so no locked instruction is needed.
  counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

/// Returns the index of the first key that belongs to the partition that begins with `low`, or to a
/// later one.
size_t first_from(std::span<const SortKey> sorted, size_t begin, std::string_view low) {
  const auto found =
      std::partition_point(sorted.begin() + static_cast<ptrdiff_t>(begin), sorted.end(),
                           [&](const SortKey& key) { return is_before(key_of(*key.record), low); });
  return static_cast<size_t>(found - sorted.begin());
}

/// A record in a fold table is prefetched this many records after the slot that leads to it. By
/// then the slot is in the cache.
constexpr size_t kFoldAhead = 8;

/// A storage has a fold table only as long as the table elides at least one of this many records.
constexpr uint64_t kFoldedPart = 3;

bool is_same_stream(const LogStream& a, const LogStream& b) {
  return a.node == b.node && a.logger == b.logger && a.incarnation == b.incarnation &&
         a.directory == b.directory;
}

/// Returns how the plan, which comes from another process, contradicts itself, or null.
const char* contradiction_in(const SnapshotPlan& plan, const PlannedMapper& task,
                             std::span<const CapturedRange> captured) {
  if (plan.snapshot <= plan.base || plan.epoch < plan.base_epoch) return "is older than its base";
  if (plan.salvages && !are_all_victims(plan)) return "salvages without a rewrite";
  if (!do_ascend(captured)) return "has captured ranges out of order";
  for (auto stream = task.streams.begin(); stream != task.streams.end(); ++stream) {
    const bool is_repeated = std::any_of(task.streams.begin(), stream, [&](const auto& other) {
      return is_same_stream(other.stream, stream->stream);
    });
    if (is_repeated) return "names a stream twice";
  }
  for (size_t at = 0; at < plan.storages.size(); ++at) {
    const PlannedStorage& storage = plan.storages[at];
    if (at != 0 && plan.storages[at - 1].id >= storage.id) return "has storages out of order";
    for (size_t i = 1; i < storage.partitions.size(); ++i) {
      if (storage.partitions[i - 1].low >= storage.partitions[i].low) {
        return "has partitions out of order";
      }
    }
    const auto ranges =
        std::ranges::equal_range(captured, storage.id, {}, &CapturedRange::storage_id);
    if (!ranges.empty() && !is_tree(storage.type)) {
      return "has captured ranges of a storage that is not a Master-tree";
    }
  }
  return nullptr;
}

}  // namespace

Mapper::Mapper(FileSystem& file_system, const SnapshotPlan& plan, const PlannedMapper& task,
               std::span<ReducerInbox* const> inboxes, MapperSettings settings)
    : file_system_(&file_system),
      plan_(&plan),
      task_(&task),
      inboxes_(inboxes),
      settings_(std::move(settings)),
      max_buckets_(std::max<uint64_t>(
          1, settings_.memory_bytes / Bucket::footprint(settings_.bucket_bytes))),
      sorter_(Bucket::max_records(settings_.bucket_bytes)) {
  pending_.reserve(kLogBlockPayload / sizeof(LogRecord));
}

Result<std::unique_ptr<Mapper>> Mapper::create(FileSystem& file_system, const SnapshotPlan& plan,
                                               const PlannedMapper& task,
                                               std::span<ReducerInbox* const> inboxes,
                                               MapperSettings settings) {
  CHECK(settings.bucket_bytes >= MapperSettings::kMinBucketBytes);
  CHECK(settings.bucket_bytes % 8 == 0 && settings.bucket_bytes <= uint64_t{1} << 30);
  CHECK(settings.fold_bytes >= MapperSettings::kMinBucketBytes && settings.fold_bytes % 8 == 0);
  CHECK(inboxes.size() == plan.reducers.size());
  if (const char* contradiction = contradiction_in(plan, task, settings.captured)) {
    return make_error(ExitCode::failed, fmt::format("snapshot {}: its plan {}: internal error",
                                                    plan.snapshot, contradiction));
  }
  std::unique_ptr<Mapper> mapper(new Mapper(file_system, plan, task, inboxes, std::move(settings)));
  for (const PlannedStorage& storage : plan.storages) {
    ATOLL_TRY(mapper->add_storage(storage));
  }
  return mapper;
}

Result<void> Mapper::add_storage(const PlannedStorage& storage) {
  CHECK(storages_.empty() || storages_.back().plan->id < storage.id);
  Storage added = {.plan = &storage, .owners = {}};
  added.may_fold = storage.type != StorageType::sequential && settings_.max_fold_tables != 0;
  std::vector<ReducerPlace> places;
  for (const PlannedPartition& partition : storage.partitions) places.push_back(partition.owner);
  if (storage.type == StorageType::sequential) places = {{task_->node, 0}};
  for (const ReducerPlace& place : places) {
    const auto found = std::ranges::find(plan_->reducers, place);
    if (found == plan_->reducers.end()) {
      return make_error(ExitCode::failed,
                        fmt::format("snapshot {}: storage {} has a partition for reducer {} of "
                                    "node {}, which the plan does not have",
                                    plan_->snapshot, storage.id, place.reducer, place.node));
    }
    added.owners.push_back(inboxes_[static_cast<size_t>(found - plan_->reducers.begin())]);
  }
  if (added.owners.empty()) {
    return make_error(ExitCode::failed, fmt::format("snapshot {}: storage {} has no partition",
                                                    plan_->snapshot, storage.id));
  }
  added.captured =
      std::ranges::equal_range(settings_.captured, storage.id, {}, &CapturedRange::storage_id);
  if (storage.id < kMaxDirectId) {
    places_.resize(storage.id + 1, kNoPlace);
    places_[storage.id] = static_cast<uint32_t>(storages_.size());
  }
  storages_.push_back(std::move(added));
  return {};
}

Result<void> Mapper::run() {
  auto mapped = map_all();
  if (!mapped) {
    for (ReducerInbox* inbox : inboxes_) inbox->give_up(plan_->snapshot);
  }
  return mapped;
}

Result<void> Mapper::map_all() {
  for (const PlannedStream& stream : task_->streams) {
    ATOLL_TRY(read(stream));
  }
  for (const auto& bucket : buckets_) {
    ATOLL_TRY(ship(*bucket));
    CHECK(bucket->is_empty());
  }
  for (Storage& storage : storages_) {
    if (storage.table == nullptr) continue;
    ATOLL_TRY(ship(storage));
  }
  for (ReducerInbox* inbox : inboxes_) {
    ATOLL_TRY(inbox->finish(plan_->snapshot));
  }
  return {};
}

Result<void> Mapper::read(const PlannedStream& stream) {
  if (stream.last_epoch <= plan_->base_epoch) return {};  // the base has all its records
  ATOLL_ASSIGN(auto reader, LogReader::open(*file_system_, stream.stream, CoveredBlocks::skip));
  // Reads up to the marker that closes stream.last_epoch. After that marker there is no block of
  // that epoch or of an earlier one. An epoch without its marker does not count.
  const uint64_t last_epoch = std::min(stream.last_epoch, plan_->epoch);
  // The base, or the part of the stream before this one, has the records up to this epoch.
  const uint64_t covered_epoch = std::max(plan_->base_epoch, stream.stream.covered_epoch);
  while (reader.closed_epoch() < stream.last_epoch) {
    ATOLL_ASSIGN(auto block, reader.next());
    if (block == nullptr) {
      const LogEnd& end = reader.end();
      return make_error(
          ExitCode::corruption,
          fmt::format("{}: offset {}: {}: the log ends with epoch {}, but epochs up to {} are "
                      "needed: restore the log from a copy",
                      end.file, end.offset, end.reason, reader.closed_epoch(), stream.last_epoch));
    }
    add(progress_.bytes_read, kLogBlockBytes);
    report_read();
    const LogBlockHeader& header = block->header;
    if (header.type != LogBlockType::records || header.epoch <= covered_epoch ||
        header.epoch > last_epoch) {
      continue;
    }
    ATOLL_TRY(take_block(*block, reader));
  }
  return {};
}

void Mapper::report_read() {
  unreported_bytes_ += kLogBlockBytes;
  DCHECK(unreported_bytes_ % kLogBlockBytes == 0);
  if (unreported_bytes_ < MapperSettings::kReportBytes || !settings_.on_read) return;
  settings_.on_read(std::exchange(unreported_bytes_, 0));
}

Result<void> Mapper::take_block(const LogBlock& block, const LogReader& reader) {
  uint64_t records = 0;
  uint64_t captured = 0;
  Storage* storage = nullptr;
  for (uint32_t offset = 0; offset < block.header.length;) {
    const auto& record = *reinterpret_cast<const LogRecord*>(block.payload + offset);
    const uint32_t at = offset;
    offset += record.length;
    DCHECK(offset > at && offset <= block.header.length);  // LogReader has checked the records
    if (record.type == LogType::filler) continue;
    if (storage == nullptr || storage->plan->id != record.storage_id) {
      storage = find(record.storage_id);
      if (storage == nullptr) continue;  // the storage was dropped
    }
    if (const char* defect = defect_in_storage(record, *storage->plan)) [[unlikely]] {
      return make_error(ExitCode::corruption,
                        fmt::format("{}: offset {}: the record at byte {} of the payload, of "
                                    "storage {}, {}",
                                    reader.file(), reader.offset(), at, record.storage_id, defect));
    }
    if (!storage->captured.empty() && is_captured(*storage, record)) {
      ++captured;
      continue;
    }
    ++records;
    if (storage->table != nullptr) {
      fold_later(*storage, record);
      continue;
    }
    const uint32_t bytes = gleaned_bytes(record);
    Bucket* bucket = storage->bucket;
    if (bucket == nullptr || !bucket->has_room(bytes)) [[unlikely]] {
      ATOLL_ASSIGN(auto made, room_for(*storage, bytes));
      bucket = made;
    }
    bucket->add(record, storage->plan->type, block.header);
  }
  add(progress_.records_read, records + captured);
  add(progress_.records_captured, captured);
  return fold_pending();
}

void Mapper::fold_later(Storage& storage, const LogRecord& record) {
  DCHECK(record.storage_id == storage.plan->id);
  const uint64_t hash = hash_of(SortKey::of(record));
  storage.table->prefetch_slot(hash);
  pending_.push_back({&storage, &record, hash});
  if (pending_.size() <= kFoldAhead) return;
  const Pending& earlier = pending_[pending_.size() - 1 - kFoldAhead];
  earlier.storage->table->prefetch_record(earlier.hash);
}

/// Moves the pending records to their fold tables. Removes tables that do not pay.
Result<void> Mapper::fold_pending() {
  for (size_t i = pending_.size() - std::min(pending_.size(), kFoldAhead); i < pending_.size();
       ++i) {
    pending_[i].storage->table->prefetch_record(pending_[i].hash);
  }
  for (const auto& [storage, record, hash] : pending_) {
    if (!storage->table->has_room(gleaned_bytes(*record))) {
      ATOLL_TRY(ship(*storage));
    }
    CHECK(storage->table->has_room(gleaned_bytes(*record)));
    storage->table->add(*record, storage->plan->type, hash);
  }
  for (const Pending& pending : pending_) {
    Storage& storage = *pending.storage;
    if (storage.may_fold || storage.table == nullptr) continue;
    ATOLL_TRY(ship(storage));
    CHECK(storage.table->is_empty() && fold_tables_ > 0);
    storage.table = nullptr;
    --fold_tables_;
  }
  pending_.clear();
  return {};
}

/// Returns whether the record's key is in a captured range. Keys of adjacent records are often in
/// one range, so the range that was found last is tried first.
bool Mapper::is_captured(Storage& storage, const LogRecord& record) {
  const uint64_t slice = SortKey::of(record).first;
  DCHECK(storage.last_captured < storage.captured.size());
  if (storage.captured[storage.last_captured].contains(slice)) return true;
  const auto after = std::ranges::upper_bound(storage.captured, slice, {}, &CapturedRange::low);
  if (after == storage.captured.begin() || !std::prev(after)->contains(slice)) return false;
  storage.last_captured = static_cast<size_t>(std::prev(after) - storage.captured.begin());
  return true;
}

Mapper::Storage* Mapper::find(uint32_t storage_id) {
  if (storage_id < places_.size()) {
    const uint32_t place = places_[storage_id];
    return place == kNoPlace ? nullptr : &storages_[place];
  }
  const auto found = std::ranges::lower_bound(
      storages_, storage_id, {}, [](const Storage& storage) { return storage.plan->id; });
  return found != storages_.end() && found->plan->id == storage_id ? &*found : nullptr;
}

Result<Bucket*> Mapper::room_for(Storage& storage, uint32_t bytes) {
  CHECK(bytes <= kMaxGleanedBytes);
  if (storage.bucket == nullptr) {
    ATOLL_ASSIGN(storage.bucket, free_bucket());
    CHECK(storage.bucket->is_empty());
    storage.bucket->storage = static_cast<uint32_t>(&storage - storages_.data());
  } else if (!storage.bucket->has_room(bytes)) {
    ATOLL_TRY(ship(*storage.bucket));
  }
  CHECK(storage.bucket->has_room(bytes));
  return storage.bucket;
}

/// Returns an empty bucket that no storage uses. If there is no room for a new bucket, ships the
/// fullest one and takes it from its storage.
Result<Bucket*> Mapper::free_bucket() {
  if (buckets_.size() < max_buckets_) {
    buckets_.push_back(std::make_unique<Bucket>(settings_.bucket_bytes));
    return buckets_.back().get();
  }
  Bucket* fullest = std::ranges::max_element(buckets_, {}, [](const auto& bucket) {
                      return bucket->used_bytes();
                    })->get();
  ATOLL_TRY(ship(*fullest));
  CHECK(storages_[fullest->storage].bucket == fullest);
  storages_[fullest->storage].bucket = nullptr;
  return fullest;
}

Result<void> Mapper::ship(Bucket& bucket) {
  if (bucket.is_empty()) return {};
  CHECK(bucket.storage < storages_.size());
  Storage& storage = storages_[bucket.storage];
  const std::span<SortKey> all = bucket.keys();
  ATOLL_ASSIGN(const auto kept, ship_keys(storage, all));
  consider_folding(storage, all.size(), kept);
  bucket.clear();
  return {};
}

/// Ships the records of a storage's fold table, in parts of the size of a bucket. If the table has
/// elided too few records, clears `may_fold`, so that `fold_pending` removes the table.
Result<void> Mapper::ship(Storage& storage) {
  FoldTable& table = *storage.table;
  const uint64_t elided = table.folded();
  const bool is_worth = elided * kFoldedPart >= elided + table.count();
  add(progress_.records_elided, elided);
  add(progress_.records_folded, elided);
  const std::span<SortKey> room(folded_keys_.get(), Bucket::max_records(settings_.bucket_bytes));
  for (;;) {
    const std::span<SortKey> keys = table.read(room);
    if (keys.empty()) break;
    ATOLL_TRY(ship_keys(storage, keys));
  }
  table.clear();
  storage.may_fold = storage.may_fold && is_worth;
  return {};
}

/// Decides after enough records of a storage whether it gets a fold table. `kept`: those of its
/// last `records` records that were not elided in their bucket.
void Mapper::consider_folding(Storage& storage, uint64_t records, std::span<const SortKey> kept) {
  if (!storage.may_fold || storage.table != nullptr) return;
  DCHECK(kept.size() <= records);
  storage.sampled += records;
  storage.repeated += sampler_.count_repeats(storage.plan->id, kept);
  if (storage.sampled < settings_.fold_sample_records) return;
  const bool is_worth = storage.repeated * kFoldedPart >= storage.sampled;
  storage.sampled = storage.repeated = 0;
  if (!is_worth || fold_tables_ == settings_.max_fold_tables) return;
  ++fold_tables_;
  storage.table = std::make_unique<FoldTable>(settings_.fold_bytes);
  if (folded_keys_ == nullptr) {
    folded_keys_ =
        std::make_unique_for_overwrite<SortKey[]>(Bucket::max_records(settings_.bucket_bytes));
  }
}

/// Sorts, compacts and ships records of a storage. Returns the keys of the shipped ones.
Result<std::span<const SortKey>> Mapper::ship_keys(const Storage& storage,
                                                   std::span<SortKey> keys) {
  count_time(SnapshotWork::map);
  const std::span<const SortKey> kept = compact(sorter_.sort(keys));
  count_time(SnapshotWork::sort);
  add(progress_.records_elided, keys.size() - kept.size());

  size_t begin = 0;
  for (size_t i = 0; i < storage.owners.size(); ++i) {
    const size_t end = i + 1 < storage.owners.size()
                           ? first_from(kept, begin, storage.plan->partitions[i + 1].low)
                           : kept.size();
    ATOLL_TRY(ship_part(kept.subspan(begin, end - begin), storage.plan->id, *storage.owners[i]));
    begin = end;
  }
  CHECK(begin == kept.size());  // each record went to one partition
  count_time(SnapshotWork::exchange);
  return kept;
}

Result<void> Mapper::ship_part(std::span<const SortKey> part, uint32_t storage_id,
                               ReducerInbox& inbox) {
  const uint64_t limit = std::min(settings_.bucket_bytes, inbox.max_message_bytes());
  while (!part.empty()) {
    uint64_t bytes = 0;
    size_t count = 0;
    for (; count < part.size(); ++count) {
      const uint32_t length = part[count].record->length;
      if (bytes + length > limit) break;
      bytes += length;
    }
    CHECK(count > 0);  // a message has room for the longest record
    ATOLL_TRY(send(part.first(count), bytes, storage_id, inbox));
    part = part.subspan(count);
  }
  return {};
}

/// Sends the records of `part`, which have `bytes` together, in one message.
Result<void> Mapper::send(std::span<const SortKey> part, uint64_t bytes, uint32_t storage_id,
                          ReducerInbox& inbox) {
  CHECK(!part.empty() && bytes >= part.size() * sizeof(LogRecord));
  ATOLL_ASSIGN(auto room, inbox.reserve(plan_->snapshot, storage_id, static_cast<uint32_t>(bytes)));
  CHECK(room.bytes().size() == bytes);
  std::byte* into = room.bytes().data();
  for (size_t i = 0; i < part.size(); ++i) {
    __builtin_prefetch(part[std::min(i + kPrefetchAhead, part.size() - 1)].record);
    const LogRecord& record = *part[i].record;
    const uint32_t length = record.length;
    DCHECK(record.storage_id == storage_id);
    copy_record(into, record, length);
    into += length;
  }
  CHECK(into == room.bytes().data() + bytes);
  room.announce(static_cast<uint32_t>(part.size()));
  add(progress_.records_shipped, part.size());
  add(progress_.bytes_shipped, bytes);
  add(progress_.messages, 1);
  return {};
}

}  // namespace atolldb
