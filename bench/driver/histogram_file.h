// The latencies of a run as buckets, for plots and for tools like HdrHistogram.
#pragma once

#include <string>

#include "bench/driver/report.h"
#include "bench/driver/run_summary.h"

namespace atolldb::bench {

/// Returns the buckets of the run as the content of a file: CSV if its name ends in ".csv", else
/// JSON (bench/README.md). `benchmark`: "tpcc" or "ycsb".
std::string histograms_text(const std::string& path, const std::string& benchmark,
                            const RunSummary& run, TypeNames names);

}  // namespace atolldb::bench
