// The text report.
#include <fmt/format.h>

#include "bench/tpcc_driver/report.h"

namespace atolldb::tpcc {

std::string Report::text() const {
  const RunSummary& run = median_run();
  std::string out = bench::headline_text(
      *this, options, median_tps(), runs.size(),
      fmt::format("{} warehouses{}", warehouses, options.cold ? " in a snapshot" : ""));
  out += bench::nodes_text(*this, run);
  out += bench::types_text(run, kTransactionNames, true);
  out += bench::durable_text(run, kTransactionNames);
  out += fmt::format(
      "  rolled back by the user (unused item): {}; districts with nothing to "
      "deliver: {}\n",
      bench::format_count(run.user_aborts), bench::format_count(run.skipped_deliveries));
  out += bench::aborts_text(run) + bench::memory_text(*this);
  for (const auto& each : runs) out += bench::early_end_text(*each);
  return out + bench::verify_text(
                   *this, fmt::format("consistency conditions 1-12 hold for all {} warehouses",
                                      warehouses));
}

}  // namespace atolldb::tpcc
