#include "bench/ycsb_driver/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace atolldb::ycsb {

namespace {

const char* distribution_name(const JobInput& input) {
  return kDistributionNames[static_cast<uint32_t>(input.distribution)];
}

nlohmann::json run_json(const RunSummary& run, const JobInput& input) {
  nlohmann::json json = bench::run_json(run, kTypeNames, false);
  json["operations_per_second"] = run.tps * input.operations;
  json["scanned_records"] = run.scanned_records;
  return json;
}

}  // namespace

double Report::remote_percent() const {
  if (options.remote_percent) return *options.remote_percent;
  return 100.0 * (nodes - 1) / nodes;
}

std::string Report::text() const {
  const RunSummary& run = median_run();
  std::string out = bench::headline_text(
      *this, options, median_tps(), runs.size(),
      fmt::format("{} records of {} bytes in {}", bench::format_count(input.records),
                  input.shape.record_bytes, options.storage));
  const bool is_skewed = input.distribution != Distribution::uniform;
  out += fmt::format(
      "workload {} ({} read:update:insert:scan:read-modify-write), {}{}, {:.0f} % remote, {}\n",
      options.workload_name(), bench::format_mix(input.mix, ':'), distribution_name(input),
      is_skewed ? fmt::format(" {}", input.theta) : "", remote_percent(),
      input.operations == 1
          ? "one operation per transaction"
          : fmt::format("{} operations per transaction: {} operations/s", input.operations,
                        bench::format_rate(operations_per_second())));
  out += bench::clients_text(options.clients, workers);
  out += bench::nodes_text(*this, run) + bench::types_text(run, kTypeNames, false) +
         bench::durable_text(run, kTypeNames);
  if (percent_of(input.mix, Operation::scan) != 0) {
    out += fmt::format("  records that scans returned: {}\n",
                       bench::format_count(run.scanned_records));
  }
  out += bench::aborts_text(run) + bench::memory_text(*this);
  for (const auto& each : runs) out += bench::early_end_text(*each);
  return out +
         bench::verify_text(*this, "every record exists once and is whole, and no update was lost");
}

nlohmann::json Report::json() const {
  const RunSummary& run = median_run();
  nlohmann::json json = bench::report_json(*this, options, median_tps(), run, kTypeNames, false,
                                           {{"workload", options.workload_name()},
                                            {"mix", bench::format_mix(input.mix, ':')},
                                            {"records", input.records},
                                            {"record_bytes", input.shape.record_bytes},
                                            {"fields", input.shape.fields},
                                            {"distribution", distribution_name(input)},
                                            {"theta", input.theta},
                                            {"remote_percent", remote_percent()},
                                            {"operations", input.operations},
                                            {"scan_length", input.scan_length},
                                            {"storage", options.storage},
                                            {"insert_order", options.insert_order},
                                            {"prefetch", input.prefetch},
                                            {"blind_updates", input.blind_updates},
                                            {"think_ms", options.clients.think_ms}});
  bench::put_clients(options.clients, json["config"]);
  json["benchmark"] = "ycsb";
  json["operations_per_second"] = operations_per_second();
  json["ended_early"] = ended_early();
  for (const auto& each : runs) json["runs"].push_back(run_json(*each, input));
  return json;
}

}  // namespace atolldb::ycsb
