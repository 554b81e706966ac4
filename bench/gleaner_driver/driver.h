// The measurement of `atoll bench gleaner`: the log of a data directory becomes snapshots, again
// and again, in another directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/gleaner_driver/report.h"

namespace atolldb::gleaner_bench {

/// `data_dir`: of a cluster that has stopped; nothing in it is changed. `directory`: exists, nobody
/// else uses it. `run_epoch`: what was logged before is put into a snapshot first, and what comes
/// from there on is gleaned over it, too; 0: there is no such epoch. REQUIRES: options are checked.
/// `is_interrupted` is asked before each run; code failed then. The report lacks `source`.
Result<Report> measure(const std::string& data_dir, uint64_t run_epoch, const Options& options,
                       const std::string& directory, const std::function<bool()>& is_interrupted);

}  // namespace atolldb::gleaner_bench
