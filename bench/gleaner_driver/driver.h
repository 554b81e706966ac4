// The measurement of `atoll bench gleaner`: repeatedly makes snapshots of the log of a data
// directory, in another directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/gleaner_driver/report.h"

namespace atolldb::gleaner_bench {

/// `data_dir`: of a cluster that has stopped; it is not changed. `directory`: exists, and is used
/// by this call only. `run_epoch`: log before it is first put into a snapshot, and log from it on
/// is also processed on top of that snapshot; 0: no such epoch. `is_interrupted` is called before
/// each run; if it returns true, the call returns code failed. The report has no `source` yet.
/// REQUIRES: the options are checked.
Result<Report> measure(const std::string& data_dir, uint64_t run_epoch, const Options& options,
                       const std::string& directory, const std::function<bool()>& is_interrupted);

}  // namespace atolldb::gleaner_bench
