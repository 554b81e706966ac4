// Maps records to nodes and keys. Every node has a partition: the loaded items 0..n-1 and the
// records that its workers insert.
//
//   number of a record   [lane 16][sequence 40]   lane 0: loaded; 1 + w: inserted by worker w
//   key (Master-tree)    [node 8][number, scrambled unless ordered 56]
//   index (array)        node x stride + item
#pragma once

#include <cstdint>

#include "bench/job/storage_spec.h"

namespace atolldb::ycsb {

inline constexpr uint32_t kNumberBits = 56;
inline constexpr uint32_t kSequenceBits = 40;
inline constexpr uint64_t kNumberMask = (uint64_t{1} << kNumberBits) - 1;
inline constexpr uint64_t kSequenceMask = (uint64_t{1} << kSequenceBits) - 1;

constexpr uint64_t number_of(uint32_t lane, uint64_t sequence) {
  return uint64_t{lane} << kSequenceBits | sequence;
}
constexpr uint32_t lane_of(uint64_t number) {
  return static_cast<uint32_t>(number >> kSequenceBits);
}
constexpr uint64_t sequence_of(uint64_t number) { return number & kSequenceMask; }

/// A bijection of 56-bit numbers that scatters their order. It corresponds to YCSB's hashed insert
/// order, but has no collisions.
constexpr uint64_t scramble(uint64_t number) {
  number ^= number >> 28;
  number = number * 0x9e3779b97f4a7c15ull & kNumberMask;
  number ^= number >> 28;
  number = number * 0xbf58476d1ce4e5b9ull & kNumberMask;
  return number ^ number >> 28;
}
/// Returns the inverse of an odd number modulo 2^64 (Newton; each step doubles the correct bits).
constexpr uint64_t odd_inverse(uint64_t odd) {
  uint64_t inverse = odd;
  for (int step = 0; step < 6; ++step) inverse *= 2 - odd * inverse;
  return inverse;
}
constexpr uint64_t unscramble(uint64_t number) {
  number ^= number >> 28;
  number = number * odd_inverse(0xbf58476d1ce4e5b9ull) & kNumberMask;
  number ^= number >> 28;
  number = number * odd_inverse(0x9e3779b97f4a7c15ull) & kNumberMask;
  return number ^ number >> 28;
}

/// A permutation of [0, count) that separates neighbours. Without it, popular ranks would share
/// pages where keys are dense. REQUIRES: 1 <= count < 2^32.
class Scatter {
 public:
  explicit Scatter(uint64_t count);
  uint64_t of(uint64_t rank) const { return rank * factor_ % count_; }

 private:
  uint64_t count_;
  uint64_t factor_;
};

class Keyspace {
 public:
  /// `records`: number of loaded records on all nodes together. REQUIRES: at least one per node.
  Keyspace(uint64_t records, uint32_t nodes, uint32_t record_bytes, bool is_array, bool is_ordered)
      : nodes_(nodes),
        smallest_(records / nodes),
        larger_ones_(records % nodes),
        stride_(bench::whole_leaves(record_bytes, (records + nodes - 1) / nodes)),
        is_array_(is_array),
        is_ordered_(is_ordered) {}

  uint32_t nodes() const { return nodes_; }
  bool is_array() const { return is_array_; }
  bool is_ordered() const { return is_ordered_; }
  /// Returns the number of loaded records in the node's partition.
  uint64_t records_of(uint32_t node) const { return smallest_ + (node < larger_ones_ ? 1 : 0); }
  /// Returns the number of records of the array. Each partition begins at a leaf page.
  uint64_t array_records() const { return stride_ * nodes_; }

  /// Returns the id of a record: its key as an integer, or its index in the array.
  uint64_t id_of(uint32_t node, uint64_t number) const {
    if (is_array_) return node * stride_ + number;
    return uint64_t{node} << kNumberBits | (is_ordered_ ? number : scramble(number));
  }
  uint64_t number_of_id(uint64_t id) const {
    if (is_array_) return id % stride_;
    return is_ordered_ ? id & kNumberMask : unscramble(id & kNumberMask);
  }
  /// Returns the last id that may belong to the same partition as `id`.
  uint64_t last_of_partition(uint64_t id) const {
    if (!is_array_) return id | kNumberMask;
    const auto node = static_cast<uint32_t>(id / stride_);
    return node * stride_ + records_of(node) - 1;
  }

 private:
  uint32_t nodes_;
  uint64_t smallest_;     // records of the smallest partition
  uint64_t larger_ones_;  // number of partitions with one record more: those of the first nodes
  uint64_t stride_;
  bool is_array_;
  bool is_ordered_;
};

}  // namespace atolldb::ycsb
