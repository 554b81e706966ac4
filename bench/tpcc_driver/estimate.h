// How much volatile memory a benchmark will need: the base tables, and what its runs insert.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/tpcc_driver/options.h"

namespace atolldb::tpcc {

struct StorageEstimate {
  std::string name;
  uint64_t bytes;  // in the whole cluster, before the run
};

struct Estimate {
  std::vector<StorageEstimate> storages;
  uint64_t base_bytes = 0;    // all of them
  uint64_t insert_bytes = 0;  // what warm-up and runs add at the assumed speed
  uint64_t pool_bytes = 0;    // per node, with headroom; a multiple of 2 MiB
  uint64_t assumed_tps = 0;

  uint64_t bytes_of(std::string_view name) const;  // 0: no such storage
  std::string text(uint32_t nodes) const;
};

/// `cores` bounds how many workers can be busy at a time.
Estimate estimate_memory(const Options& options, uint32_t warehouses, uint32_t nodes,
                         uint32_t workers, uint32_t cores);

/// Bytes that one committed transaction of the mix adds, on average.
double inserted_bytes_per_transaction(const Options& options);

}  // namespace atolldb::tpcc
