// Merging the workers' results of a run.
#include <algorithm>

#include "bench/tpcc_driver/report.h"

namespace atolldb::tpcc {

Result<std::unique_ptr<RunSummary>> summarize(const std::vector<std::string>& outputs,
                                              uint32_t nodes) {
  auto summary = std::make_unique<RunSummary>();
  summary->nodes.resize(nodes);
  for (const std::string& output : outputs) {
    const Result<RunResult> result = RunResult::parse(output);
    if (!result) return std::unexpected(result.error());
    if (result->node >= nodes) {
      return make_error(ExitCode::failed, "bench tpcc: a result names an unknown node");
    }
    NodeSummary& node = summary->nodes[result->node];
    summary->seconds = std::max(summary->seconds, result->seconds);
    // Each worker's rate is over its own time: workers end within one transaction of each other.
    for (uint32_t type = 0; type < kTransactionTypes && result->seconds > 0; ++type) {
      const double tps = static_cast<double>(result->commits[type]) / result->seconds;
      summary->commits[type] += result->commits[type];
      summary->tps_of_type[type] += tps;
      summary->tps += tps;
      node.tps += tps;
      summary->latency[type].merge(result->latency[type]);
    }
    summary->user_aborts += result->user_aborts;
    summary->delivered_orders += result->delivered_orders;
    summary->skipped_deliveries += result->skipped_deliveries;
    summary->engine.add(result->engine);
    node.engine.add(result->engine);
    // The reason of the worker that stopped first says more than "another worker had to stop".
    if (!result->ended_early.empty() &&
        (summary->ended_early.empty() || summary->ended_early.starts_with("another"))) {
      summary->ended_early = result->ended_early;
    }
  }
  return summary;
}

double Report::median_tps() const {
  std::vector<double> sorted;
  for (const auto& run : runs) sorted.push_back(run->tps);
  std::ranges::sort(sorted);
  const size_t count = sorted.size();
  if (count == 0) return 0;
  return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

const RunSummary& Report::median_run() const {
  std::vector<const RunSummary*> sorted;
  for (const auto& run : runs) sorted.push_back(run.get());
  std::ranges::sort(sorted, {}, &RunSummary::tps);
  return *sorted[(sorted.size() - 1) / 2];
}

bool Report::ended_early() const {
  return std::ranges::any_of(runs, [](const auto& run) { return !run->ended_early.empty(); });
}

}  // namespace atolldb::tpcc
