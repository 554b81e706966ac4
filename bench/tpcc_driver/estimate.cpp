#include "bench/tpcc_driver/estimate.h"

#include <algorithm>

#include "bench/tpcc/tables.h"

namespace atolldb::tpcc {

namespace {

using bench::array_bytes;
using bench::tree_bytes;

/// Assumed transactions per second and core. It is an upper limit, so that pools do not fill up on
/// a fast machine.
constexpr double kTpsPerCore = 200'000;
constexpr double kSequentialRecordHead = 24;
constexpr double kMeanLines = 10;

double history_bytes(double records) {
  return records * (kSequentialRecordHead + sizeof(HistoryRow));
}

double records_of(std::string_view name, double warehouses, const Scale& scale) {
  const double orders = warehouses * kDistricts * scale.customers;
  if (name == "tpcc_order_line") return orders * (kMinLines + scale.max_lines) / 2;
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
    } else if (is_tree(spec.type)) {
      bytes = static_cast<uint64_t>(tree_bytes(records, spec.payload_bytes));
    } else {
      bytes = static_cast<uint64_t>(history_bytes(records));
    }
    estimate.add(spec.name, bytes);
  }
  const double busy = std::max(1u, std::min(workers, cores));
  estimate.add_inserts(options, busy, kTpsPerCore, inserted_bytes_per_transaction(options));

  // Node 0 has the items. If the warehouses cannot be divided evenly, it also has the most
  // warehouses.
  const double most = (warehouses + nodes - 1) / nodes;
  const uint64_t items = estimate.bytes_of("tpcc_item");
  const double base = static_cast<double>(estimate.base_bytes - items) * most / warehouses +
                      static_cast<double>(items);
  estimate.size_pools(base, nodes);
  return estimate;
}

}  // namespace atolldb::tpcc
