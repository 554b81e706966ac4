// Keys of the Master-trees. Each key is one 64-bit integer: one slice, in one layer.
//
//   order             [warehouse 16][district  4][0 12][order 32]
//   new_order         the same
//   order_line        [warehouse 16][district  4][order 32][line 12]
//   order_by_customer [warehouse 16][district  4][customer 12][order 32]
//   customer_by_name  [warehouse 16][district  4][hash of the last name 32][customer 12]
//
// Warehouses, districts, customers, orders and lines count from 1, so a zero is a lower bound.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bench/job/step_scan.h"
#include "bench/tpcc/text.h"
#include "engine/mastertree/mastertree.h"

namespace atolldb::tpcc {

using Key = std::array<std::byte, 8>;

using bench::key_value;

constexpr uint64_t order_key(uint32_t warehouse, uint32_t district, uint32_t order) {
  return uint64_t{warehouse} << 48 | uint64_t{district} << 44 | order;
}
constexpr uint32_t order_of_order_key(uint64_t key) { return static_cast<uint32_t>(key); }

constexpr uint32_t warehouse_of_order_key(uint64_t key) { return static_cast<uint32_t>(key >> 48); }
constexpr uint32_t district_of_order_key(uint64_t key) {
  return static_cast<uint32_t>(key >> 44 & 0xf);
}

/// Greatest line number that fits a key. It is the upper bound of scans over the lines of an order.
inline constexpr uint32_t kLastLine = 0xfff;

constexpr uint64_t order_line_key(uint32_t warehouse, uint32_t district, uint32_t order,
                                  uint32_t line) {
  return uint64_t{warehouse} << 48 | uint64_t{district} << 44 | uint64_t{order} << 12 | line;
}
constexpr uint32_t order_of_line_key(uint64_t key) { return static_cast<uint32_t>(key >> 12); }
constexpr uint32_t line_of_line_key(uint64_t key) { return static_cast<uint32_t>(key & kLastLine); }

constexpr uint64_t customer_order_key(uint32_t warehouse, uint32_t district, uint32_t customer,
                                      uint32_t order) {
  return uint64_t{warehouse} << 48 | uint64_t{district} << 44 | uint64_t{customer} << 32 | order;
}
constexpr uint32_t order_of_customer_order_key(uint64_t key) { return static_cast<uint32_t>(key); }

/// Any hash works, because look-ups compare the whole names.
inline uint32_t last_name_hash(const Text<16>& name) {
  uint64_t words[2];
  std::memcpy(words, name.bytes, sizeof(words));
  const uint64_t mixed = (words[0] * 0x9e3779b97f4a7c15ull) ^ (words[1] * 0xc2b2ae3d27d4eb4full);
  return static_cast<uint32_t>((mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9ull >> 32);
}

constexpr uint64_t customer_name_key(uint32_t warehouse, uint32_t district, uint32_t hash,
                                     uint32_t customer) {
  return uint64_t{warehouse} << 48 | uint64_t{district} << 44 | uint64_t{hash} << 12 | customer;
}
constexpr uint32_t customer_of_name_key(uint64_t key) { return static_cast<uint32_t>(key & 0xfff); }

}  // namespace atolldb::tpcc
