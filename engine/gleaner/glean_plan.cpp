#include "engine/gleaner/glean_plan.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "engine/format/byte_stream.h"
#include "shared/base/base64.h"

namespace atolldb {
namespace {

// Readers of another version return an error instead of wrong data.
constexpr uint32_t kPlanMagic = 0x32504c47;      // "GLP2"
constexpr uint32_t kComposedMagic = 0x32434c47;  // "GLC2"

// Defined after all functions that they call.
template <typename Element>
void put(ByteWriter& to, const std::vector<Element>& all);
template <typename Element>
void get(ByteReader& from, std::vector<Element>& all);

void put(ByteWriter& to, const ReducerPlace& place) {
  to.number(place.node);
  to.number(place.reducer);
}
void put(ByteWriter& to, const GleanPartition& partition) {
  to.text(partition.low);
  put(to, partition.owner);
}
void put(ByteWriter& to, const GleanStorage& storage) {
  to.number(storage.id);
  to.number(static_cast<uint8_t>(storage.type));
  to.number(storage.payload_bytes);
  to.number(storage.record_count);
  to.number(storage.base_root.word());
  put(to, storage.partitions);
}
void put(ByteWriter& to, const ClusterUuid& uuid) { to.raw(std::as_bytes(std::span(uuid))); }
void put(ByteWriter& to, const GleanStream& gleaned) {
  const LogStream& stream = gleaned.stream;
  to.text(stream.directory);
  to.number(stream.node);
  to.number(stream.logger);
  to.number(stream.incarnation);
  to.number(static_cast<uint8_t>(stream.start_epoch.has_value()));
  to.number(stream.start_epoch.value_or(0));
  to.number(static_cast<uint8_t>(stream.cluster_uuid.has_value()));
  put(to, stream.cluster_uuid.value_or(ClusterUuid{}));
  to.number(stream.covered_epoch);
  to.number(gleaned.last_epoch);
}
void put(ByteWriter& to, const GleanMapper& mapper) {
  to.number(mapper.node);
  to.number(mapper.mapper);
  put(to, mapper.streams);
}
void put(ByteWriter& to, const SnapshotFilePlace& file) {
  to.number(file.snapshot);
  to.number(file.node);
  to.text(file.directory);
  to.number(file.page_count);
}
void put(ByteWriter& to, const ComposedPage& page) {
  to.number(page.low);
  to.number(page.page.word());
  to.number(page.level);
  to.number(page.pages);
  to.number(page.high);
  to.number(page.records);
}
void put(ByteWriter& to, const ComposedPartition& partition) {
  to.number(partition.storage_id);
  to.number(partition.partition);
  put(to, partition.pages);
  to.number(partition.log_records);
  to.number(partition.pages_written);
  to.number(partition.pages_read);
  to.number(partition.stand_ins);
}

template <typename Element>
void put(ByteWriter& to, const std::vector<Element>& all) {
  to.number(static_cast<uint32_t>(all.size()));
  for (const Element& element : all) put(to, element);
}

template <typename Number>
void get(ByteReader& from, Number& value)
  requires std::is_integral_v<Number>
{
  value = from.number<Number>();
}
void get(ByteReader& from, SnapshotPointer& pointer) {
  pointer = SnapshotPointer(from.number<uint64_t>());
}
void get(ByteReader& from, ClusterUuid& uuid) { from.raw(std::as_writable_bytes(std::span(uuid))); }
template <typename Value>
void get(ByteReader& from, std::optional<Value>& value) {
  const bool has_value = from.number<uint8_t>() != 0;
  Value read = {};
  get(from, read);
  if (has_value) value = read;
}
void get(ByteReader& from, ReducerPlace& place) {
  get(from, place.node);
  get(from, place.reducer);
}
void get(ByteReader& from, GleanPartition& partition) {
  partition.low = from.text();
  get(from, partition.owner);
}
void get(ByteReader& from, GleanStorage& storage) {
  get(from, storage.id);
  storage.type = static_cast<StorageType>(from.number<uint8_t>());
  get(from, storage.payload_bytes);
  get(from, storage.record_count);
  get(from, storage.base_root);
  get(from, storage.partitions);
}
void get(ByteReader& from, GleanStream& gleaned) {
  LogStream& stream = gleaned.stream;
  stream.directory = from.text();
  get(from, stream.node);
  get(from, stream.logger);
  get(from, stream.incarnation);
  get(from, stream.start_epoch);
  get(from, stream.cluster_uuid);
  get(from, stream.covered_epoch);
  get(from, gleaned.last_epoch);
}
void get(ByteReader& from, GleanMapper& mapper) {
  get(from, mapper.node);
  get(from, mapper.mapper);
  get(from, mapper.streams);
}
void get(ByteReader& from, SnapshotFilePlace& file) {
  get(from, file.snapshot);
  get(from, file.node);
  file.directory = from.text();
  get(from, file.page_count);
}
void get(ByteReader& from, ComposedPage& page) {
  get(from, page.low);
  get(from, page.page);
  get(from, page.level);
  get(from, page.pages);
  get(from, page.high);
  get(from, page.records);
}
void get(ByteReader& from, ComposedPartition& partition) {
  get(from, partition.storage_id);
  get(from, partition.partition);
  get(from, partition.pages);
  get(from, partition.log_records);
  get(from, partition.pages_written);
  get(from, partition.pages_read);
  get(from, partition.stand_ins);
}

/// No element is empty, so a wrong count ends when the bytes end.
template <typename Element>
void get(ByteReader& from, std::vector<Element>& all) {
  const auto count = from.number<uint32_t>();
  for (uint32_t i = 0; i < count && from.is_good(); ++i) get(from, all.emplace_back());
}

std::unexpected<Error> not_that(const char* what) {
  return make_error(ExitCode::failed,
                    std::string(what) +
                        ": is not what this version writes: coordinator and nodes "
                        "must be of one version: restart the cluster");
}

bool is_storage_type(const GleanStorage& storage) {
  return storage.type <= StorageType::sequential;
}

}  // namespace

std::string encode_plan(const GleanPlan& plan) {
  ByteWriter to;
  to.number(kPlanMagic);
  to.number(plan.snapshot);
  to.number(plan.base);
  to.number(plan.base_epoch);
  to.number(plan.epoch);
  to.number(static_cast<uint8_t>(plan.rewrites));
  to.number(static_cast<uint8_t>(plan.salvages));
  put(to, plan.cluster_uuid);
  put(to, plan.storages);
  put(to, plan.mappers);
  put(to, plan.reducers);
  put(to, plan.files);
  return to_base64(to.bytes());
}

Result<GleanPlan> decode_plan(std::string_view text) {
  const auto bytes = from_base64(text);
  if (!bytes) return not_that("the gleaner's plan");
  ByteReader from(*bytes);
  const auto magic = from.number<uint32_t>();
  GleanPlan plan;
  get(from, plan.snapshot);
  get(from, plan.base);
  get(from, plan.base_epoch);
  get(from, plan.epoch);
  plan.rewrites = from.number<uint8_t>() != 0;
  plan.salvages = from.number<uint8_t>() != 0;
  get(from, plan.cluster_uuid);
  get(from, plan.storages);
  get(from, plan.mappers);
  get(from, plan.reducers);
  get(from, plan.files);
  if (magic != kPlanMagic || !from.is_at_end() ||
      !std::ranges::all_of(plan.storages, is_storage_type) ||
      encode_plan(plan) != text) {  // detects wrong spare bits of base64, too
    return not_that("the gleaner's plan");
  }
  return plan;
}

std::string encode_composed(const std::vector<ComposedPartition>& partitions) {
  ByteWriter to;
  to.number(kComposedMagic);
  put(to, partitions);
  return to_base64(to.bytes());
}

Result<std::vector<ComposedPartition>> decode_composed(std::string_view text) {
  const auto bytes = from_base64(text);
  if (!bytes) return not_that("the gleaner's partitions");
  ByteReader from(*bytes);
  const auto magic = from.number<uint32_t>();
  std::vector<ComposedPartition> partitions;
  get(from, partitions);
  if (magic != kComposedMagic || !from.is_at_end() || encode_composed(partitions) != text) {
    return not_that("the gleaner's partitions");
  }
  return partitions;
}

}  // namespace atolldb
