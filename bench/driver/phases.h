// The phases that every benchmark has, on a cluster that is up.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/driver/cluster_port.h"
#include "bench/driver/options.h"
#include "bench/driver/report.h"
#include "bench/job/run_times.h"

namespace atolldb::bench {

/// Where progress goes.
struct Console {
  std::function<void(const std::string&)> line;      // a whole line
  std::function<void(const std::string&)> progress;  // replaces the previous progress on a terminal
};

/// Times of run `number` (from 1); says on the console that it starts. Only the first run has a
/// warm-up: it warms up the database for all.
RunTimes announce_run(const Console& console, const CommonOptions& options, uint32_t number);

/// Runs the job on all workers and meanwhile prints the rate of commits once a second.
Result<std::vector<std::string>> run_with_progress(ClusterPort& cluster, const Console& console,
                                                   const std::string& job, const std::string& input,
                                                   uint64_t start_ns);

/// Runs a survey job and enters what it found.
Result<void> survey(ClusterPort& cluster, std::string_view command, const std::string& job,
                    const std::string& input, ReportHead& report);

}  // namespace atolldb::bench
