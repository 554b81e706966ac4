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

/// Two nodes with one worker each. The worker of node 0 loaded records 0..records-1, so their pages
/// are in that node's pool and remote for the other worker.
struct Loaded {
  explicit Loaded(uint64_t record_count);

  /// Made once for each size, and kept.
  static Loaded& of(uint64_t record_count);

  LocalCluster cluster;
  uint64_t records;
  MasterTree tree;
  Array array;
};

/// Aborts the program on any other status: a benchmark of transactions that do not commit would
/// measure nothing.
void expect_ok(Status status);

}  // namespace atolldb::bench
