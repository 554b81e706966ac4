// Estimates the volatile memory of a TPC-C run: its base tables, and the inserts of its runs.
#pragma once

#include <cstdint>

#include "bench/driver/estimate.h"
#include "bench/tpcc_driver/options.h"

namespace atolldb::tpcc {

using bench::Estimate;

/// `cores`: maximum number of workers that are busy at the same time.
Estimate estimate_memory(const Options& options, uint32_t warehouses, uint32_t nodes,
                         uint32_t workers, uint32_t cores);

/// Returns the average number of bytes that a committed transaction of the mix adds.
double inserted_bytes_per_transaction(const Options& options);

}  // namespace atolldb::tpcc
