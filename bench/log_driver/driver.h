// The measurement of `atoll bench log`: a logger of the product writes recorded blocks, epoch by
// epoch, into a new data directory, which is verified afterwards.
#pragma once

#include <functional>
#include <string>

#include "bench/log_driver/recording.h"
#include "bench/log_driver/report.h"

namespace atolldb::log_bench {

/// `directory`: an existing directory that only this call uses; it becomes a data directory. The
/// report contains findings of the verification, which are not errors. `is_interrupted` is called
/// between epochs. The report has no `source` and no facts about the recording yet. REQUIRES: the
/// options are checked.
Result<Report> replay(const Recording& recording, const Options& options,
                      const std::string& directory, const std::function<bool()>& is_interrupted);

/// Does the checks of `atoll wal verify`. Also checks that exactly `records` records are durable,
/// up to `epoch`. Returns the violations; empty: none.
Result<std::vector<std::string>> verify_replay(const std::string& directory, uint64_t records,
                                               uint64_t epoch);

}  // namespace atolldb::log_bench
