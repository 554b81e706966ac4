// The measurement of `atoll bench gleaner`: repeatedly makes snapshots of the log of a data
// directory, in another directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/gleaner_driver/report.h"

namespace atolldb::gleaner_bench {

/// `data_dir`: data directory of a stopped cluster; the function does not change it. `directory`:
/// an existing directory that only this call uses. `run_epoch`: first epoch of the run; 0: there is
/// none.
/// The function measures the log after the newest snapshot, or the whole log if there is no
/// snapshot. Without a snapshot but with a `run_epoch`, it also makes a snapshot of the log before
/// that epoch. It then measures the later log on top of that snapshot.
/// `is_interrupted` is called before each run; if it returns true, the call returns code failed.
/// The report has no `source` yet. REQUIRES: the options are checked.
Result<Report> measure(const std::string& data_dir, uint64_t run_epoch, const Options& options,
                       const std::string& directory, const std::function<bool()>& is_interrupted);

}  // namespace atolldb::gleaner_bench
