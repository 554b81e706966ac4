// Cardinalities of clause 4.3.3.1. Tests use smaller ones. The product uses those of the
// specification, or orders with more lines for the scans of [FOEDUS15] appendix A.
#pragma once

#include <cstdint>

namespace atolldb::tpcc {

inline constexpr uint32_t kDistricts = 10;  // per warehouse
inline constexpr uint32_t kMinLines = 5;    // order lines per order
inline constexpr uint32_t kMaxLines = 15;
inline constexpr uint32_t kMaxLoadedLines = 500;

struct Scale {
  uint32_t items = 100'000;    // number of items, and of stock rows per warehouse
  uint32_t customers = 3'000;  // per district; also orders per district
  uint32_t new_orders = 900;   // undelivered orders per district
  uint32_t last_names =
      1'000;  // customers with the names 0, 1, ...; the other names come from NURand
  uint32_t max_lines = kMaxLines;  // maximum number of lines of a loaded order
  bool hash_orders = false;        // the orders are in a hash storage, not in a Master-tree

  uint32_t delivered_orders() const { return customers - new_orders; }
  bool operator==(const Scale&) const = default;
};

/// Limits of the keys: 12 bits for customers, 16 bits for warehouses.
inline constexpr uint32_t kMaxCustomers = 4'095;
inline constexpr uint32_t kMaxWarehouses = 65'535;
inline constexpr uint32_t kMaxItems = 1'000'000;

}  // namespace atolldb::tpcc
