// Phases that all benchmarks share, on a cluster that runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/driver/cluster_port.h"
#include "bench/driver/options.h"
#include "bench/driver/report.h"
#include "bench/job/run_times.h"

namespace atolldb::bench {

/// Destination of progress output.
struct Console {
  std::function<void(const std::string&)> line;      // a whole line
  std::function<void(const std::string&)> progress;  // replaces the previous progress on a terminal
};

/// Returns the times of run `number` (from 1), and announces the run. Only the first run has a
/// warm-up, which warms up the database for all.
RunTimes announce_run(const Console& console, const CommonOptions& options, uint32_t number);

/// Runs the job on all workers, and prints the commit rate once a second.
Result<std::vector<std::string>> run_with_progress(ClusterPort& cluster, const Console& console,
                                                   const std::string& job, const std::string& input,
                                                   uint64_t start_ns);

/// Runs a survey job and adds its findings to `report`.
Result<void> survey(ClusterPort& cluster, std::string_view command, const std::string& job,
                    const std::string& input, ReportHead& report);

}  // namespace atolldb::bench
