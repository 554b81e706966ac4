#include "bench/tpcc_driver/estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/common/machine_info.h"
#include "bench/tpcc/tables.h"

namespace atolldb::tpcc {

namespace {

/// Transactions a second that one core may reach; pools must not fill up on a faster machine.
constexpr double kTpsPerCore = 200'000;
/// Border pages are split when full: this part of a page is used in the long run.
constexpr double kTreeFill = 0.65;
constexpr double kTreeRecordHead = 24 + 10;  // head, slice, offset
constexpr double kSequentialRecordHead = 24;
constexpr double kMeanLines = 10;
/// Pages in the caches of threads, interior pages, pages that wait for their grace.
constexpr double kHeadroom = 1.2;
constexpr uint64_t kFixedBytesPerNode = uint64_t{16} << 20;
constexpr uint64_t kStep = uint64_t{2} << 20;

double tree_bytes(double records, double payload_bytes) {
  return records * (kTreeRecordHead + payload_bytes) / kTreeFill;
}

double history_bytes(double records) {
  return records * (kSequentialRecordHead + sizeof(HistoryRow));
}

uint64_t array_bytes(const StorageSpec& spec) {
  const uint64_t per_leaf = records_per_leaf(spec.payload_bytes);
  const uint64_t leaves = (spec.record_count + per_leaf - 1) / per_leaf;
  return leaves * kPageBytes * 257 / 256 + kPageBytes;
}

double records_of(std::string_view name, double warehouses, const Scale& scale) {
  const double orders = warehouses * kDistricts * scale.customers;
  if (name == "tpcc_order_line") return orders * kMeanLines;
  if (name == "tpcc_new_order") return warehouses * kDistricts * scale.new_orders;
  return orders;  // order, order_by_customer, customer_by_name, history
}

}  // namespace

double inserted_bytes_per_transaction(const Options& options) {
  const double new_orders = options.mix[static_cast<size_t>(TransactionType::new_order)] * 0.01;
  const double payments = options.mix[static_cast<size_t>(TransactionType::payment)] * 0.01;
  const double order = tree_bytes(kMeanLines, sizeof(OrderLineRow)) +
                       tree_bytes(1, sizeof(OrderRow)) + tree_bytes(2, 0);
  return new_orders * order + payments * history_bytes(1);
}

Estimate estimate_memory(const Options& options, uint32_t warehouses, uint32_t nodes,
                         uint32_t workers, uint32_t cores) {
  Estimate estimate;
  for (const StorageSpec& spec : storage_specs(warehouses, options.scale)) {
    const double records = records_of(spec.name, warehouses, options.scale);
    uint64_t bytes = 0;
    if (spec.type == StorageType::array) {
      bytes = array_bytes(spec);
    } else if (spec.type == StorageType::mastertree) {
      bytes = static_cast<uint64_t>(tree_bytes(records, spec.payload_bytes));
    } else {
      bytes = static_cast<uint64_t>(history_bytes(records));
    }
    estimate.storages.push_back({std::string(spec.name), bytes});
    estimate.base_bytes += bytes;
  }
  const double busy = std::max(1u, std::min(workers, cores));
  const double seconds =
      options.warmup_seconds + static_cast<double>(options.seconds) * options.repeat;
  estimate.assumed_tps = static_cast<uint64_t>(busy * kTpsPerCore);
  estimate.insert_bytes =
      static_cast<uint64_t>(busy * kTpsPerCore * seconds * inserted_bytes_per_transaction(options));

  // Node 0 has the items, and the most warehouses if they do not divide.
  const double most = (warehouses + nodes - 1) / nodes;
  const uint64_t items = estimate.bytes_of("tpcc_item");
  const double base = static_cast<double>(estimate.base_bytes - items) * most / warehouses +
                      static_cast<double>(items);
  const double inserts = static_cast<double>(estimate.insert_bytes) / nodes;
  const auto pool = static_cast<uint64_t>((base + inserts) * kHeadroom) + kFixedBytesPerNode;
  estimate.pool_bytes = (pool + kStep - 1) / kStep * kStep;
  return estimate;
}

uint64_t Estimate::bytes_of(std::string_view name) const {
  const auto found = std::ranges::find(storages, name, &StorageEstimate::name);
  return found == storages.end() ? 0 : found->bytes;
}

std::string Estimate::text(uint32_t nodes) const {
  return fmt::format(
      "memory estimate: {} of tables, {} of inserts at up to {} transactions/s: {} a node, {} in "
      "all",
      bench::format_bytes(base_bytes), bench::format_bytes(insert_bytes),
      bench::format_count(assumed_tps), bench::format_bytes(pool_bytes),
      bench::format_bytes(pool_bytes * nodes));
}

}  // namespace atolldb::tpcc
