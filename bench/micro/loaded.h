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

/// Records 0..records-1 of one worker in a Master-tree or a hash storage. The records of the tree
/// are loaded in a random order, as those of the hash storage are by their hashes.
struct LoadedPoints {
  LoadedPoints(StorageType type, uint64_t record_count);

  /// Returns the database of this type and size. Makes it at the first call and keeps it, but drops
  /// those of the other type.
  static LoadedPoints& of(StorageType type, uint64_t record_count);
  bool is_hash() const { return storage->type == StorageType::hash; }
  /// Bytes of pages for each record, without those of the directory.
  double bytes_per_record();

  LocalCluster cluster;
  uint64_t records;
  StorageControl* storage;
};

/// Aborts the program unless `status` is ok. A benchmark of failed transactions would measure
/// nothing.
void expect_ok(Status status);

}  // namespace atolldb::bench
