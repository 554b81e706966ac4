// Merges the results of a run's workers.
#include "bench/tpcc_driver/report.h"
#include "shared/base/try.h"

namespace atolldb::tpcc {

Result<std::unique_ptr<RunSummary>> summarize(const std::vector<std::string>& outputs,
                                              uint32_t nodes) {
  auto summary = std::make_unique<RunSummary>(nodes);
  for (const std::string& output : outputs) {
    ATOLL_ASSIGN(const RunResult result, RunResult::parse(output));
    ATOLL_TRY(summary->merge(result, kCommand));
    summary->user_aborts += result.user_aborts;
    summary->delivered_orders += result.delivered_orders;
    summary->skipped_deliveries += result.skipped_deliveries;
  }
  return summary;
}

}  // namespace atolldb::tpcc
