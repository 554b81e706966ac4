// How much volatile memory a run of YCSB will need.
#pragma once

#include <cstdint>

#include "bench/driver/estimate.h"
#include "bench/ycsb_driver/options.h"

namespace atolldb::ycsb {

/// `cores` bounds how many workers can be busy at a time.
bench::Estimate estimate_memory(const Options& options, const JobInput& input, uint32_t nodes,
                                uint32_t workers, uint32_t cores);

}  // namespace atolldb::ycsb
