#include "bench/tpcc/tables.h"

#include "bench/job/run_loop.h"

namespace atolldb::tpcc {

namespace {

StorageSpec array_of(std::string_view name, uint32_t payload_bytes, uint64_t warehouses,
                     uint64_t rows) {
  return {name, StorageType::array, payload_bytes,
          warehouses * warehouse_stride(payload_bytes, rows)};
}

StorageSpec tree_of(std::string_view name, uint32_t typical_payload_bytes) {
  return {name, StorageType::mastertree, typical_payload_bytes, 0};
}

}  // namespace

std::vector<StorageSpec> storage_specs(uint32_t warehouses, const Scale& scale) {
  const uint64_t customers = uint64_t{kDistricts} * scale.customers;
  return {
      array_of("tpcc_control", sizeof(bench::StopRow), 1, 1),
      array_of("tpcc_warehouse_static", sizeof(PlaceRow), warehouses, 1),
      array_of("tpcc_warehouse_ytd", sizeof(YtdRow), warehouses, 1),
      array_of("tpcc_district_static", sizeof(PlaceRow), warehouses, kDistricts),
      array_of("tpcc_district_ytd", sizeof(YtdRow), warehouses, kDistricts),
      array_of("tpcc_district_next", sizeof(DistrictNextRow), warehouses, kDistricts),
      array_of("tpcc_customer_static", sizeof(CustomerRow), warehouses, customers),
      array_of("tpcc_customer_dynamic", sizeof(CustomerBalanceRow), warehouses, customers),
      array_of("tpcc_customer_data", sizeof(CustomerDataRow), warehouses, customers),
      array_of("tpcc_stock", sizeof(StockRow), warehouses, scale.items),
      array_of("tpcc_stock_static", sizeof(StockInfoRow), warehouses, scale.items),
      // The array has exactly the items that exist. So the look-up of an unused item is out of
      // range.
      {"tpcc_item", StorageType::array, sizeof(ItemRow), scale.items},
      {"tpcc_order", scale.hash_orders ? StorageType::hash : StorageType::mastertree,
       sizeof(OrderRow), 0},
      tree_of("tpcc_order_by_customer", 0),
      tree_of("tpcc_new_order", 0),
      tree_of("tpcc_order_line", sizeof(OrderLineRow)),
      tree_of("tpcc_customer_by_name", sizeof(CustomerNameRow)),
      {"tpcc_history", StorageType::sequential, 0, 0},
  };
}

Result<Tables> Tables::open(ControlSegment& control, const Scale& scale, uint32_t warehouses) {
  bench::StorageOpener opener(control, storage_specs(warehouses, scale));
  Tables tables{
      .control = opener.array("tpcc_control"),
      .warehouse_static = opener.array("tpcc_warehouse_static"),
      .warehouse_ytd = opener.array("tpcc_warehouse_ytd"),
      .district_static = opener.array("tpcc_district_static"),
      .district_ytd = opener.array("tpcc_district_ytd"),
      .district_next = opener.array("tpcc_district_next"),
      .customer_static = opener.array("tpcc_customer_static"),
      .customer_dynamic = opener.array("tpcc_customer_dynamic"),
      .customer_data = opener.array("tpcc_customer_data"),
      .stock = opener.array("tpcc_stock"),
      .stock_static = opener.array("tpcc_stock_static"),
      .item = opener.array("tpcc_item"),
      .order = opener.tree("tpcc_order"),
      .order_by_customer = opener.tree("tpcc_order_by_customer"),
      .new_order = opener.tree("tpcc_new_order"),
      .order_line = opener.tree("tpcc_order_line"),
      .customer_by_name = opener.tree("tpcc_customer_by_name"),
      .history = opener.sequential("tpcc_history"),
      .scale = scale,
  };
  if (!opener.fault().empty()) {
    return make_error(ExitCode::failed, "tpcc: " + opener.fault() + ": use `atoll bench tpcc`");
  }
  return tables;
}

}  // namespace atolldb::tpcc
