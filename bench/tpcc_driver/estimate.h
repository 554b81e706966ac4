// How much volatile memory a benchmark will need: the base tables, and what its runs insert.
#pragma once

#include <cstdint>

#include "bench/driver/estimate.h"
#include "bench/tpcc_driver/options.h"

namespace atolldb::tpcc {

using bench::Estimate;

/// `cores` bounds how many workers can be busy at a time.
Estimate estimate_memory(const Options& options, uint32_t warehouses, uint32_t nodes,
                         uint32_t workers, uint32_t cores);

/// Bytes that one committed transaction of the mix adds, on average.
double inserted_bytes_per_transaction(const Options& options);

}  // namespace atolldb::tpcc
