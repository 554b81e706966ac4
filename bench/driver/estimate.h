// Estimates the volatile memory of a benchmark: its base tables, and the inserts of its runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/driver/options.h"
#include "bench/job/storage_spec.h"

namespace atolldb::bench {

struct StorageEstimate {
  std::string name;
  uint64_t bytes;  // in the whole cluster, before the run
};

struct Estimate {
  std::vector<StorageEstimate> storages;
  uint64_t base_bytes = 0;    // sum over `storages`
  uint64_t insert_bytes = 0;  // inserts of warm-up and runs at the assumed rate
  uint64_t pool_bytes = 0;    // per node, with headroom; a multiple of 2 MiB
  uint64_t cache_bytes = 0;   // per node; a snapshot of its base tables fits in this cache
  uint64_t assumed_tps = 0;

  void add(std::string_view name, uint64_t bytes);
  uint64_t bytes_of(std::string_view name) const;  // 0: no such storage
  /// Adds the inserts of warm-up and runs. Assumes that each of `busy` cores reaches
  /// `tps_per_core`.
  void add_inserts(const CommonOptions& options, double busy, double tps_per_core,
                   double bytes_per_transaction);
  /// Sets pool_bytes and cache_bytes. `base`: bytes of the base tables on the fullest node.
  void size_pools(double base, uint32_t nodes);
  std::string text(uint32_t nodes) const;
};

/// Returns the size of a Master-tree whose keys fit one slice.
double tree_bytes(double records, double payload_bytes);
uint64_t array_bytes(const StorageSpec& spec);

}  // namespace atolldb::bench
