#include "bench/driver/estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/common/machine_info.h"

namespace atolldb::bench {

namespace {

/// Average fill of border pages in the long run, because full pages are split.
constexpr double kTreeFill = 0.65;
constexpr double kTreeRecordHead = 24 + 10;  // bytes per record: head, then slice and offset
/// Factor for pages in the caches of threads, interior pages, and retired pages within their grace
/// period.
constexpr double kHeadroom = 1.2;
constexpr uint64_t kFixedBytesPerNode = uint64_t{16} << 20;
constexpr uint64_t kStep = uint64_t{2} << 20;

}  // namespace

double tree_bytes(double records, double payload_bytes) {
  return records * (kTreeRecordHead + payload_bytes) / kTreeFill;
}

uint64_t array_bytes(const StorageSpec& spec) {
  const uint64_t per_leaf = records_per_leaf(spec.payload_bytes);
  const uint64_t leaves = (spec.record_count + per_leaf - 1) / per_leaf;
  return leaves * kPageBytes * 257 / 256 + kPageBytes;
}

void Estimate::add(std::string_view name, uint64_t bytes) {
  storages.push_back({std::string(name), bytes});
  base_bytes += bytes;
}

uint64_t Estimate::bytes_of(std::string_view name) const {
  const auto found = std::ranges::find(storages, name, &StorageEstimate::name);
  return found == storages.end() ? 0 : found->bytes;
}

void Estimate::add_inserts(const CommonOptions& options, double busy, double tps_per_core,
                           double bytes_per_transaction) {
  const double seconds =
      options.warmup_seconds + static_cast<double>(options.seconds) * options.repeat;
  assumed_tps = static_cast<uint64_t>(busy * tps_per_core);
  insert_bytes = static_cast<uint64_t>(busy * tps_per_core * seconds * bytes_per_transaction);
}

void Estimate::size_pools(double base, uint32_t nodes) {
  const double inserts = static_cast<double>(insert_bytes) / nodes;
  const auto with_headroom = [](double bytes) {
    const auto size = static_cast<uint64_t>(bytes * kHeadroom) + kFixedBytesPerNode;
    return (size + kStep - 1) / kStep * kStep;
  };
  pool_bytes = with_headroom(base + inserts);
  cache_bytes = with_headroom(base);
}

std::string Estimate::text(uint32_t nodes) const {
  return fmt::format(
      "memory estimate: {} of tables, {} of inserts at up to {} transactions/s: {} per node, {} in "
      "all",
      format_bytes(base_bytes), format_bytes(insert_bytes), format_count(assumed_tps),
      format_bytes(pool_bytes), format_bytes(pool_bytes * nodes));
}

}  // namespace atolldb::bench
