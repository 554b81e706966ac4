// The text parts of a report.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "bench/driver/report.h"

namespace atolldb::bench {

namespace {

double us(uint64_t ns) { return static_cast<double>(ns) * 1e-3; }

std::string share(uint64_t part, uint64_t other) {
  const uint64_t total = part + other;
  return fmt::format(
      "{:.1f} %",
      total == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(total));
}

}  // namespace

std::string format_rate(double per_second) {
  return format_count(static_cast<uint64_t>(per_second + 0.5));
}

std::string headline_text(const ReportHead& head, const CommonOptions& options, double tps,
                          size_t run_count, const std::string& more) {
  return fmt::format(
      "\n{} transactions/s committed (durability {}), {} of {} s, {} nodes ({}), {} workers, {}\n"
      "machine: {}\n",
      format_rate(tps), head.durability,
      run_count == 1 ? std::string("1 run") : fmt::format("median of {} runs", run_count),
      options.seconds, head.nodes, head.mode, head.workers, more,
      head.machine.line(head.pool_page_bytes));
}

std::string nodes_text(const ReportHead& head, const RunSummary& run) {
  std::string text;
  for (uint32_t node = 0; node < run.nodes.size(); ++node) {
    const NodeSummary& summary = run.nodes[node];
    const EngineCounts& engine = summary.engine;
    text += fmt::format(
        "  node {}: {} transactions/s (durability {}); pages resolved {} local, {} remote ({}); "
        "locks {} local, {} remote ({})\n",
        node, format_rate(summary.tps), head.durability, format_count(engine.local_accesses),
        format_count(engine.remote_accesses), share(engine.remote_accesses, engine.local_accesses),
        format_count(engine.local_locks), format_count(engine.remote_locks),
        share(engine.remote_locks, engine.local_locks));
  }
  return text;
}

std::string types_text(const RunSummary& run, TypeNames names, bool with_idle) {
  std::string text = fmt::format("  {:<13}{:>12}{:>10}{:>9}{:>9}{:>9}{:>9}{:>10}\n", "type",
                                 "committed", "per s", "p50 us", "p95", "p99", "p99.9", "max");
  for (uint32_t type = 0; type < names.size(); ++type) {
    if (!with_idle && run.commits[type] == 0) continue;
    const LatencyHistogram& latency = run.latency[type];
    text += fmt::format("  {:<13}{:>12}{:>10}{:>9.1f}{:>9.1f}{:>9.1f}{:>9.1f}{:>10.1f}\n",
                        names[type], format_count(run.commits[type]),
                        format_rate(run.tps_of_type[type]), us(latency.quantile_ns(0.5)),
                        us(latency.quantile_ns(0.95)), us(latency.quantile_ns(0.99)),
                        us(latency.quantile_ns(0.999)), us(latency.max_ns()));
  }
  return text;
}

std::string durable_text(const RunSummary& run, TypeNames names) {
  if (run.log_wait.count() == 0) return "";
  const auto ms = [](uint64_t ns) { return static_cast<double>(ns) * 1e-6; };
  const auto line = [&](const char* what, const LatencyHistogram& latency) {
    return fmt::format("  {:<24}{:>9.2f}{:>9.2f}{:>9.2f}{:>10.2f}\n", what,
                       ms(latency.quantile_ns(0.5)), ms(latency.quantile_ns(0.99)),
                       ms(latency.quantile_ns(0.999)), ms(latency.max_ns()));
  };
  std::string text = fmt::format("  {:<24}{:>9}{:>9}{:>9}{:>10}\n", "acknowledged after", "p50 ms",
                                 "p99", "p99.9", "max");
  for (uint32_t type = 0; type < names.size(); ++type) {
    if (run.commits[type] != 0) text += line(names[type], run.durable_latency[type]);
  }
  if (std::ranges::count(run.commits, 0u) + 1 < std::ssize(run.commits)) {
    text += line("all", merged(run.durable_latency));
  }
  text += line("  until the epoch ended", run.epoch_wait);
  text += line("  write and sync", run.log_wait);
  for (const EpochStages::Stage& stage : run.stages.stages) {
    text += line(("    epoch: " + stage.name).c_str(), stage.times);
  }
  if (run.stages.slowest_epoch.is_object()) {
    text += "  " + slowest_epoch_text(run.stages.slowest_epoch) + "\n";
  }
  text += fmt::format(
      "  log: {}/s of records; workers waited {} times for room in their buffers\n",
      format_bytes(static_cast<uint64_t>(static_cast<double>(run.engine.log_bytes) / run.seconds)),
      format_count(run.engine.log_stalls));
  return text;
}

std::string aborts_text(const RunSummary& run) {
  std::string text;
  for (uint32_t i = 0; i < kStatusCount; ++i) {
    const auto reason = static_cast<Status>(i);
    if (reason == Status::user_abort || run.engine.aborts[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(reason),
                        format_count(run.engine.aborts[i]));
  }
  return fmt::format("  aborted attempts, all retried: {}\n", text.empty() ? "none" : text);
}

std::string memory_text(const ReportHead& head) {
  std::string text;
  for (const auto& [name, bytes] : head.storage_bytes) {
    text += fmt::format("  {:<28}{:>12}\n", name, format_bytes(bytes));
  }
  for (const PoolUse& pool : head.pools) {
    text += fmt::format("  pool of node {}: {} of {} in use\n", pool.node,
                        format_bytes(pool.used_bytes), format_bytes(pool.bytes));
  }
  return text;
}

std::string early_end_text(const RunSummary& run) {
  if (run.ended_early.empty()) return "";
  return fmt::format("run ended early after {:.1f} s: {}\n", run.seconds, run.ended_early);
}

std::string verify_text(const ReportHead& head, const std::string& holds) {
  if (!head.verify_done) return "verify: not done\n";
  if (head.violations.empty()) return "verify: " + holds + "\n";
  std::string text = "verify: FAILED\n";
  for (const std::string& violation : head.violations) text += "  " + violation + "\n";
  return text;
}

}  // namespace atolldb::bench
