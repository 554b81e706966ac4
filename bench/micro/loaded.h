// The database of the micro-benchmarks: one tree and one array with the same records.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "bench/micro/local_cluster.h"
#include "engine/array/array.h"
#include "engine/mastertree/mastertree.h"

namespace atolldb::bench {

inline constexpr uint32_t kPayloadBytes = 100;
using Payload = std::array<std::byte, kPayloadBytes>;

/// Two nodes with one worker each. The worker of node 0 loads records 0..records-1. So their pages
/// are in the pool of node 0, and are remote for the worker of node 1.
struct Loaded {
  explicit Loaded(uint64_t record_count);

  /// Returns the database of this size. Makes it at the first call and keeps it.
  static Loaded& of(uint64_t record_count);

  LocalCluster cluster;
  uint64_t records;
  MasterTree tree;
  Array array;
};

/// Aborts the program unless `status` is ok. A benchmark of failed transactions would measure
/// nothing.
void expect_ok(Status status);

}  // namespace atolldb::bench
