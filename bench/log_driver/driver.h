// The measurement of `atoll bench log`: a logger of the product writes recorded blocks, epoch by
// epoch, into a new data directory, which is verified afterwards.
#pragma once

#include <functional>
#include <string>

#include "bench/log_driver/recording.h"
#include "bench/log_driver/report.h"

namespace atolldb::log_bench {

/// `directory`: exists, nobody else uses it; it is a data directory afterwards. REQUIRES: options
/// are checked. What the verification finds is in the report, not an error. `is_interrupted` is
/// asked between epochs. The report lacks `source` and what it says of the recording.
Result<Report> replay(const Recording& recording, const Options& options,
                      const std::string& directory, const std::function<bool()>& is_interrupted);

/// What `atoll log verify` would say of it, and whether just these records are durable, up to
/// `epoch`. Empty: all is well.
Result<std::vector<std::string>> verify_replay(const std::string& directory, uint64_t records,
                                               uint64_t epoch);

}  // namespace atolldb::log_bench
