// Runs the phases that all benchmarks share on a running cluster.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/driver/cluster_port.h"
#include "bench/driver/options.h"
#include "bench/driver/report.h"
#include "bench/job/run_times.h"
#include "shared/base/try.h"

namespace atolldb::bench {

/// Destination of progress output.
struct Console {
  std::function<void(const std::string&)> line;      // a whole line
  std::function<void(const std::string&)> progress;  // replaces the previous progress on a terminal
};

/// Returns the facts about the cluster and the machine.
ReportHead describe(ClusterPort& cluster);

/// Creates the storages and loads them with the job. `what`: name of the data on the console.
Result<void> load(ClusterPort& cluster, const Console& console, std::span<const StorageSpec> specs,
                  const std::string& job, const std::string& input, const std::string& what,
                  ReportHead& report);

/// Returns the times of run `number` (from 1), and announces the run. Only the first run has a
/// warm-up. It warms up the database for all later runs. `runs_before`: runs since the load, before
/// those of this driver.
RunTimes announce_run(const Console& console, const CommonOptions& options, uint32_t number,
                      uint64_t runs_before = 0);

/// Runs the job on all workers, and prints the commit rate once a second. Adds the rates of the
/// measured seconds to `per_second`.
Result<std::vector<std::string>> run_with_progress(ClusterPort& cluster, const Console& console,
                                                   const std::string& job, const std::string& input,
                                                   const RunTimes& times,
                                                   std::vector<double>& per_second);

/// Runs a survey job and adds its findings to `report`. Does nothing if the cluster allows no jobs.
Result<void> survey(ClusterPort& cluster, std::string_view command, const std::string& job,
                    const std::string& input, ReportHead& report);

/// Runs the benchmark `repeat` times, or until a run ends early. Then runs the survey. `summarize`
/// merges the outputs of a run. `runs_before`: runs since the load, before these.
template <typename Report, typename Input, typename Summarize>
Result<void> run_all(ClusterPort& cluster, const Console& console, std::string_view command,
                     const std::string& run_job, const std::string& survey_job, Input& input,
                     Report& report, Summarize summarize, uint64_t runs_before = 0) {
  for (uint32_t number = 1; number <= report.options.repeat; ++number) {
    input.times = announce_run(console, report.options, number, runs_before);
    std::vector<double> per_second;
    const uint64_t first_epoch = cluster.epoch();
    const auto before = cluster.acknowledgement(first_epoch);
    ATOLL_ASSIGN(
        const std::vector<std::string> outputs,
        run_with_progress(cluster, console, run_job, input.to_json(), input.times, per_second));
    ATOLL_ASSIGN(auto summary, summarize(outputs, report.nodes));
    summary->stages = epoch_stages_between(before, cluster.acknowledgement(first_epoch));
    summary->per_second = std::move(per_second);
    report.runs.push_back(std::move(summary));
    if (report.ended_early()) break;
  }
  return survey(cluster, command, survey_job, input.to_json(), report);
}

}  // namespace atolldb::bench
