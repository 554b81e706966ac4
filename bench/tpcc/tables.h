// The storages of TPC-C: names and sizes for their creation, and handles.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/job/storage_spec.h"
#include "bench/tpcc/rows.h"
#include "bench/tpcc/scale.h"
#include "shared/base/error.h"

namespace atolldb::tpcc {

using bench::records_per_leaf;
using bench::StorageSpec;

/// Returns all storages of a database with `warehouses` warehouses.
std::vector<StorageSpec> storage_specs(uint32_t warehouses, const Scale& scale);

/// Returns the distance between the indexes of two warehouses. It is a whole number of leaf pages,
/// so that each page belongs to one warehouse and its node.
constexpr uint64_t warehouse_stride(uint32_t payload_bytes, uint64_t rows) {
  return bench::whole_leaves(payload_bytes, rows);
}

/// Handles of the storages, and index arithmetic. Process-local.
struct Tables {
  Array control;  // one bench::StopRow
  Array warehouse_static;
  Array warehouse_ytd;
  Array district_static;
  Array district_ytd;
  Array district_next;
  Array customer_static;
  Array customer_dynamic;
  Array customer_data;
  Array stock;
  Array stock_static;
  Array item;
  MasterTree order;  // its keys are those of `stored_order`
  MasterTree order_by_customer;
  MasterTree new_order;
  MasterTree order_line;
  MasterTree customer_by_name;
  Sequential history;
  Scale scale;

  /// Finds all storages in the catalog. The error names the first one that is missing or has other
  /// sizes. `warehouses`: 0 if any number will do, because each index is checked.
  static Result<Tables> open(ControlSegment& control, const Scale& scale, uint32_t warehouses);

  /// Returns the key of an order in `order`, for a key of order_key.
  bench::StoredId stored_order(uint64_t key) const { return {key, scale.hash_orders}; }

  uint64_t warehouse_at(uint32_t w) const {
    return (w - 1) * warehouse_stride(sizeof(PlaceRow), 1);
  }
  uint64_t warehouse_ytd_at(uint32_t w) const {
    return (w - 1) * warehouse_stride(sizeof(YtdRow), 1);
  }
  uint64_t district_at(uint32_t w, uint32_t d) const {
    return (w - 1) * warehouse_stride(sizeof(PlaceRow), kDistricts) + (d - 1);
  }
  uint64_t district_ytd_at(uint32_t w, uint32_t d) const {
    return (w - 1) * warehouse_stride(sizeof(YtdRow), kDistricts) + (d - 1);
  }
  uint64_t district_next_at(uint32_t w, uint32_t d) const {
    return (w - 1) * warehouse_stride(sizeof(DistrictNextRow), kDistricts) + (d - 1);
  }
  template <typename Row>
  uint64_t customer_at(uint32_t w, uint32_t d, uint32_t c) const {
    return (w - 1) * warehouse_stride(sizeof(Row), uint64_t{kDistricts} * scale.customers) +
           uint64_t{d - 1} * scale.customers + (c - 1);
  }
  template <typename Row>
  uint64_t stock_at(uint32_t w, uint32_t i) const {
    return (w - 1) * warehouse_stride(sizeof(Row), scale.items) + (i - 1);
  }
  uint64_t item_at(uint32_t i) const { return i - 1; }
};

}  // namespace atolldb::tpcc
