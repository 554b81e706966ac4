// Estimates the volatile memory of a YCSB run.
#pragma once

#include <cstdint>

#include "bench/driver/estimate.h"
#include "bench/ycsb_driver/options.h"

namespace atolldb::ycsb {

/// `cores`: maximum number of workers that are busy at the same time.
bench::Estimate estimate_memory(const Options& options, const JobInput& input, uint32_t nodes,
                                uint32_t workers, uint32_t cores);

}  // namespace atolldb::ycsb
