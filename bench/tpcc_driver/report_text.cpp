// The summary for people.
#include <fmt/format.h>

#include "bench/tpcc_driver/report.h"

namespace atolldb::tpcc {

namespace {

using bench::format_bytes;
using bench::format_count;

std::string rate(double tps) { return format_count(static_cast<uint64_t>(tps + 0.5)); }

double us(uint64_t ns) { return static_cast<double>(ns) * 1e-3; }

std::string share(uint64_t part, uint64_t other) {
  const uint64_t total = part + other;
  return fmt::format(
      "{:.1f} %",
      total == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(total));
}

std::string types_table(const RunSummary& run) {
  std::string text = fmt::format("  {:<13}{:>12}{:>10}{:>9}{:>9}{:>9}{:>9}{:>10}\n", "type",
                                 "committed", "per s", "p50 us", "p95", "p99", "p99.9", "max");
  for (uint32_t type = 0; type < kTransactionTypes; ++type) {
    const bench::LatencyHistogram& latency = run.latency[type];
    text += fmt::format("  {:<13}{:>12}{:>10}{:>9.1f}{:>9.1f}{:>9.1f}{:>9.1f}{:>10.1f}\n",
                        kTransactionNames[type], format_count(run.commits[type]),
                        rate(run.tps_of_type[type]), us(latency.quantile_ns(0.5)),
                        us(latency.quantile_ns(0.95)), us(latency.quantile_ns(0.99)),
                        us(latency.quantile_ns(0.999)), us(latency.max_ns()));
  }
  return text;
}

std::string aborts_line(const RunSummary& run) {
  std::string text;
  for (uint32_t i = 0; i < kStatusCount; ++i) {
    const auto reason = static_cast<Status>(i);
    if (reason == Status::user_abort || run.engine.aborts[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(reason),
                        format_count(run.engine.aborts[i]));
  }
  return text.empty() ? "none" : text;
}

std::string storages_table(const Report& report) {
  std::string text;
  for (const auto& [name, bytes] : report.storage_bytes) {
    text += fmt::format("  {:<28}{:>12}\n", name, format_bytes(bytes));
  }
  for (const PoolUse& pool : report.pools) {
    text += fmt::format("  pool of node {}: {} of {} in use\n", pool.node,
                        format_bytes(pool.used_bytes), format_bytes(pool.bytes));
  }
  return text;
}

std::string verify_lines(const Report& report) {
  if (!report.verify_done) return "verify: not done\n";
  if (report.violations.empty()) {
    return fmt::format("verify: consistency conditions 1-12 hold for all {} warehouses\n",
                       report.warehouses);
  }
  std::string text = "verify: FAILED\n";
  for (const std::string& violation : report.violations) text += "  " + violation + "\n";
  return text;
}

}  // namespace

std::string Report::text() const {
  const RunSummary& run = median_run();
  std::string out = fmt::format(
      "\n{} transactions/s committed ({}), {} of {} s, {} nodes ({}), {} workers, {} "
      "warehouses\n",
      rate(median_tps()), durability_note(),
      runs.size() == 1 ? std::string("1 run") : fmt::format("median of {} runs", runs.size()),
      options.seconds, nodes, mode, workers, warehouses);
  out += "machine: " + machine.line(pool_page_bytes) + "\n";
  for (uint32_t node = 0; node < run.nodes.size(); ++node) {
    const NodeSummary& summary = run.nodes[node];
    const EngineCounts& engine = summary.engine;
    out += fmt::format(
        "  node {}: {} transactions/s ({}); pages resolved {} local, {} remote ({}); locks {} "
        "local, {} remote ({})\n",
        node, rate(summary.tps), durability_note(), format_count(engine.local_accesses),
        format_count(engine.remote_accesses), share(engine.remote_accesses, engine.local_accesses),
        format_count(engine.local_locks), format_count(engine.remote_locks),
        share(engine.remote_locks, engine.local_locks));
  }
  out += types_table(run);
  out += fmt::format(
      "  rolled back by the user (unused item): {}; districts with nothing to "
      "deliver: {}\n",
      format_count(run.user_aborts), format_count(run.skipped_deliveries));
  out += fmt::format("  aborted attempts, all retried: {}\n", aborts_line(run));
  out += storages_table(*this);
  for (const auto& each : runs) {
    if (!each->ended_early.empty()) {
      out += fmt::format("run ended early after {:.1f} s: {}\n", each->seconds, each->ended_early);
    }
  }
  return out + verify_lines(*this);
}

}  // namespace atolldb::tpcc
