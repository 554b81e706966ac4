#include "bench/gleaner_driver/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/driver/report.h"

namespace atolldb::gleaner_bench {
namespace {

template <typename Figure>
double median(const std::vector<Gleaned>& runs, const Figure& figure) {
  std::vector<double> figures;
  for (const Gleaned& run : runs) figures.push_back(figure(run));
  const auto middle = figures.begin() + static_cast<ptrdiff_t>(figures.size() / 2);
  std::ranges::nth_element(figures, middle);
  return *middle;
}

double rate(uint64_t count, uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(ns);
}

double per_log_record(uint64_t ns, const Gleaned& run) {
  return run.records_read == 0 ? 0
                               : static_cast<double>(ns) / static_cast<double>(run.records_read);
}

struct Part {
  const char* name;
  const char* title;
  uint64_t Gleaned::* records;
  PartTime Gleaned::* time;
};
constexpr Part kParts[] = {
    {"mapper", "mapper", &Gleaned::records_read, &Gleaned::map},
    {"reducer", "reducer", &Gleaned::records_received, &Gleaned::collect},
    {"composer", "composer", &Gleaned::records_composed, &Gleaned::compose},
};

double mb(double bytes) { return bytes * 1e-6; }

std::string scenario_text(const Scenario& scenario) {
  const Gleaned& run = scenario.first();
  std::string out =
      fmt::format("\n{}\n  log: {}, {} records; older snapshot: {}\n", scenario.what,
                  bench::format_bytes(scenario.log_bytes), bench::format_count(run.records_read),
                  scenario.base_bytes == 0 ? "none" : bench::format_bytes(scenario.base_bytes));
  for (const Part& part : kParts) {
    out += fmt::format(
        "  {:8} {:>12} records/s of processor time, {:>12} including waits\n", part.title,
        bench::format_rate(scenario.records_per_second(part.records, part.time, &PartTime::cpu_ns)),
        bench::format_rate(
            scenario.records_per_second(part.records, part.time, &PartTime::wall_ns)));
  }
  out +=
      fmt::format("  all: {:.2f} s: {:.0f} MB/s of log; {:.0f} MB/s per core\n", scenario.seconds(),
                  mb(scenario.log_bytes_per_second()), mb(scenario.log_bytes_per_core_second()));
  out += fmt::format("  processor time: {:.1f} ns per log record, of which the kernel {:.1f} ns\n",
                     scenario.ns_per_log_record(&PartTime::cpu_ns),
                     scenario.ns_per_log_record(&PartTime::system_ns));
  out += fmt::format("  pages: {} written ({}), {} of the older snapshot read; sorted runs: {}\n",
                     bench::format_count(run.pages_written),
                     bench::format_bytes(run.pages_written * kPageBytes),
                     bench::format_count(run.pages_read), run.sorted_runs);
  return out;
}

nlohmann::json scenario_json(const Scenario& scenario) {
  const Gleaned& run = scenario.first();
  nlohmann::json json = {
      {"name", scenario.name},
      {"base_bytes", scenario.base_bytes},
      {"log_bytes", scenario.log_bytes},
      {"read_bytes", run.read_bytes},
      {"records", run.records_read},
      {"records_shipped", run.records_shipped},
      {"records_composed", run.records_composed},
      {"pages_written", run.pages_written},
      {"pages_read", run.pages_read},
      {"sorted_runs", run.sorted_runs},
      {"dumped_bytes", run.dumped_bytes},
      {"seconds", scenario.seconds()},
      {"log_bytes_per_second", scenario.log_bytes_per_second()},
      {"log_bytes_per_core_second", scenario.log_bytes_per_core_second()},
      {"cpu_ns_per_log_record", scenario.ns_per_log_record(&PartTime::cpu_ns)},
      {"system_ns_per_log_record", scenario.ns_per_log_record(&PartTime::system_ns)}};
  for (const Part& part : kParts) {
    json[part.name] = {
        {"records_per_cpu_second",
         scenario.records_per_second(part.records, part.time, &PartTime::cpu_ns)},
        {"records_per_second",
         scenario.records_per_second(part.records, part.time, &PartTime::wall_ns)},
        {"cpu_ns_per_log_record", scenario.ns_per_log_record(part.time, &PartTime::cpu_ns)}};
  }
  return json;
}

}  // namespace

double Scenario::records_per_second(uint64_t Gleaned::* records, PartTime Gleaned::* part,
                                    uint64_t PartTime::* clock) const {
  return median(runs, [&](const Gleaned& run) { return rate(run.*records, run.*part.*clock); });
}

double Scenario::log_bytes_per_second() const {
  return median(runs, [this](const Gleaned& run) { return rate(log_bytes, run.wall_ns); });
}

double Scenario::log_bytes_per_core_second() const {
  return median(runs,
                [this](const Gleaned& run) { return rate(log_bytes, run.sum(&PartTime::cpu_ns)); });
}

double Scenario::ns_per_log_record(PartTime Gleaned::* part, uint64_t PartTime::* clock) const {
  return median(runs, [&](const Gleaned& run) { return per_log_record(run.*part.*clock, run); });
}

double Scenario::ns_per_log_record(uint64_t PartTime::* clock) const {
  return median(runs, [&](const Gleaned& run) { return per_log_record(run.sum(clock), run); });
}

double Scenario::seconds() const {
  return median(runs, [](const Gleaned& run) { return static_cast<double>(run.wall_ns) * 1e-9; });
}

std::string Report::text() const {
  std::string out = fmt::format(
      "\nthe gleaner with one mapper, one reducer and one composer, {} runs of each, medians\n"
      "machine: {}, {} cores, {} memory, {}\n"
      "log: {}; reducer's memory: {}; files in {}\n",
      options.repeat, machine.cpu, machine.cores, bench::format_bytes(machine.memory_bytes),
      machine.kernel, source, bench::format_bytes(options.exchange_bytes), directory);
  for (const Scenario& scenario : scenarios) out += scenario_text(scenario);
  return out;
}

nlohmann::json Report::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Scenario& scenario : scenarios) list.push_back(scenario_json(scenario));
  return {{"schema_version", bench::kReportSchemaVersion},
          {"benchmark", "gleaner"},
          {"scenarios", std::move(list)},
          {"config",
           {{"source", source},
            {"directory", directory},
            {"record_seconds", options.record_seconds},
            {"warehouses", options.warehouses},
            {"repeat", options.repeat},
            {"exchange_bytes", options.exchange_bytes}}},
          {"machine",
           {{"cpu", machine.cpu},
            {"cores", machine.cores},
            {"memory_bytes", machine.memory_bytes},
            {"kernel", machine.kernel}}}};
}

}  // namespace atolldb::gleaner_bench
