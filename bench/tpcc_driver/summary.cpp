// Merges the results of a run's workers.
#include "bench/tpcc_driver/report.h"

namespace atolldb::tpcc {

Result<std::unique_ptr<RunSummary>> summarize(const std::vector<std::string>& outputs,
                                              uint32_t nodes) {
  auto summary = std::make_unique<RunSummary>(nodes);
  for (const std::string& output : outputs) {
    const Result<RunResult> result = RunResult::parse(output);
    if (!result) return std::unexpected(result.error());
    const Result<void> merged = summary->merge(*result, kCommand);
    if (!merged) return std::unexpected(merged.error());
    summary->user_aborts += result->user_aborts;
    summary->delivered_orders += result->delivered_orders;
    summary->skipped_deliveries += result->skipped_deliveries;
  }
  return summary;
}

}  // namespace atolldb::tpcc
