#include "engine/gleaner/snapshot_plan.h"

#include <algorithm>

#include "engine/format/message_bytes.h"

namespace atolldb {

template <typename Archive>
void fields(Archive& archive, Described<Archive, ReducerPlace>& place) {
  archive(place.node, place.reducer);
}
template <typename Archive>
void fields(Archive& archive, Described<Archive, PlannedPartition>& partition) {
  archive(partition.low, partition.owner);
}
template <typename Archive>
void fields(Archive& archive, Described<Archive, PlannedStorage>& storage) {
  archive(storage.id);
  archive.enumerator(storage.type, StorageType::none, kLastStorageType);
  archive(storage.payload_bytes, storage.record_count, storage.base_root, storage.has_victims,
          storage.has_victims_below, storage.has_next_layers, storage.partitions);
}
template <typename Archive>
void fields(Archive& archive, Described<Archive, PlannedMapper>& mapper) {
  archive(mapper.node, mapper.mapper, mapper.streams);
}
template <typename Archive>
void fields(Archive& archive, Described<Archive, SnapshotPlan>& plan) {
  archive(plan.snapshot, plan.base, plan.base_epoch, plan.epoch, plan.victims, plan.salvages,
          plan.merges_runs, plan.cluster_uuid, plan.storages, plan.mappers, plan.reducers,
          plan.files);
}
template <typename Archive>
void fields(Archive& archive, Described<Archive, CapturedRange>& range) {
  archive(range.storage_id, range.low, range.high, range.high_is_end);
}
template <typename Archive>
void fields(Archive& archive, Described<Archive, ComposedPage>& page) {
  archive(page.low, page.page, page.level, page.pages, page.high, page.records);
}
template <typename Archive>
void fields(Archive& archive, Described<Archive, RecordChange>& change) {
  archive(change.written, change.replaced, change.unread_pages, change.sampled_pages,
          change.sampled_records);
}
template <typename Archive>
void fields(Archive& archive, Described<Archive, ComposedPartition>& partition) {
  archive(partition.storage_id, partition.partition, partition.pages, partition.log_records,
          partition.pages_written, partition.pages_read, partition.pages_cached,
          partition.stand_ins, partition.written, partition.replaced, partition.records);
}

namespace {

// These numbers change with the format. So readers of another version return an error.
constexpr uint32_t kPlanMagic = 0x34504c47;      // "GLP4"
constexpr uint32_t kComposedMagic = 0x35434c47;  // "GLC5"
constexpr uint32_t kCapturedMagic = 0x31415047;  // "GPA1"
constexpr const char* kPlan = "plan of a snapshot";
constexpr const char* kComposed = "composed partitions of a snapshot";
constexpr const char* kCaptured = "captured ranges of a snapshot";

}  // namespace

bool are_all_victims(const SnapshotPlan& plan) {
  return std::ranges::all_of(plan.files, [&](const SnapshotFilePlace& file) {
    return std::ranges::binary_search(plan.victims, file.snapshot);
  });
}

std::vector<std::byte> encode_plan(const SnapshotPlan& plan) {
  return encode_message(kPlanMagic, plan);
}

std::vector<std::byte> encode_composed(const std::vector<ComposedPartition>& partitions) {
  return encode_message(kComposedMagic, partitions);
}

Result<SnapshotPlan> decode_plan(std::span<const std::byte> bytes) {
  return decode_message<SnapshotPlan>(kPlanMagic, kPlan, bytes);
}

Result<std::vector<ComposedPartition>> decode_composed(std::span<const std::byte> bytes) {
  return decode_message<std::vector<ComposedPartition>>(kComposedMagic, kComposed, bytes);
}

std::vector<std::byte> encode_captured(const std::vector<CapturedRange>& ranges) {
  return encode_message(kCapturedMagic, ranges);
}

Result<std::vector<CapturedRange>> decode_captured(std::span<const std::byte> bytes) {
  return decode_message<std::vector<CapturedRange>>(kCapturedMagic, kCaptured, bytes);
}

bool do_ascend(std::span<const CapturedRange> ranges) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    const CapturedRange& range = ranges[i];
    if (!range.high_is_end && range.low >= range.high) return false;
    if (i == 0) continue;
    const CapturedRange& before = ranges[i - 1];
    if (before.storage_id > range.storage_id) return false;
    if (before.storage_id < range.storage_id) continue;
    if (before.high_is_end || before.high > range.low) return false;
  }
  return true;
}

}  // namespace atolldb
