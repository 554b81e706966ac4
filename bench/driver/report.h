// Shared parts of the reports of all benchmarks: facts about the cluster, as text and as JSON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/common/machine_info.h"
#include "bench/driver/options.h"
#include "bench/driver/run_summary.h"

namespace atolldb::bench {

/// Version of every JSON report. Keys are added, never renamed or removed; bench/README.md lists
/// them.
inline constexpr int kReportSchemaVersion = 1;

struct PoolUse {
  uint32_t node = 0;
  uint64_t bytes = 0;
  uint64_t used_bytes = 0;
};

/// Facts that do not depend on the runs.
struct ReportHead {
  uint32_t nodes = 0;
  uint32_t workers = 0;
  std::string mode;
  std::string durability;
  MachineInfo machine;
  uint32_t pool_page_bytes = 0;
  double load_seconds = 0;
  std::vector<std::pair<std::string, uint64_t>> storage_bytes;
  std::vector<PoolUse> pools;
  bool verify_done = false;
  std::vector<std::string> violations;

  bool verified() const { return verify_done && violations.empty(); }
};

/// Facts and runs. `Summary` derives from RunSummary.
template <typename Summary>
struct RunReport : ReportHead {
  std::vector<std::unique_ptr<Summary>> runs;

  double median_tps() const { return bench::median_tps(runs); }
  const Summary& median_run() const { return bench::median_run(runs); }
  bool ended_early() const {
    return std::ranges::any_of(runs, [](const auto& run) { return !run->ended_early.empty(); });
  }
};

using TypeNames = std::span<const char* const>;

// -- Text: whole lines, each with its line feed ------------------------------------------------
std::string format_rate(double per_second);
/// Returns "1,234 transactions/s committed (...), 1 run of 10 s, 2 nodes (processes), 2 workers, ",
/// `more`, and the machine.
std::string headline_text(const ReportHead& head, const CommonOptions& options, double tps,
                          size_t run_count, const std::string& more);
std::string nodes_text(const ReportHead& head, const RunSummary& run);
/// `with_idle`: whether to include types without a commit.
std::string types_text(const RunSummary& run, TypeNames names, bool with_idle);
/// Returns the latency to durability, its parts, and the volume of the log. Returns an empty text
/// if the cluster has no log.
std::string durable_text(const RunSummary& run, TypeNames names);
std::string aborts_text(const RunSummary& run);
std::string memory_text(const ReportHead& head);
/// Returns an empty text unless the run ended early.
std::string early_end_text(const RunSummary& run);
/// `holds`: the text if nothing is violated.
std::string verify_text(const ReportHead& head, const std::string& holds);

// -- JSON -------------------------------------------------------------------------------------
/// Returns p50 to max by type. `latency`: RunSummary::latency or durable_latency.
nlohmann::json latency_json(const RunSummary& run, const std::vector<LatencyHistogram>& latency,
                            TypeNames names, bool with_idle);
/// Returns p50 to max of the transactions of all types.
nlohmann::json all_latency_json(const std::vector<LatencyHistogram>& latency);
/// Returns the aborts by reason. User rollbacks are counted separately and not included.
nlohmann::json aborts_json(const EngineCounts& engine);
nlohmann::json run_json(const RunSummary& run, TypeNames names, bool with_idle);
/// Returns all members of the report except `benchmark`, `runs`, and members that only one
/// benchmark has. Adds the common options to `config`.
nlohmann::json report_json(const ReportHead& head, const CommonOptions& options, double tps,
                           const RunSummary& run, TypeNames names, bool with_idle,
                           nlohmann::json config);

/// Returns corruption if a condition is violated, else resources if a run ended early, else
/// success.
ExitCode exit_code_of(const ReportHead& head, bool ended_early);
template <typename Summary>
ExitCode exit_code_of(const RunReport<Summary>& report) {
  return exit_code_of(report, report.ended_early());
}

}  // namespace atolldb::bench
