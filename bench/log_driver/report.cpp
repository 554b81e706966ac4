#include "bench/log_driver/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/driver/report.h"

namespace atolldb::log_bench {

double LoggerWork::median_records_per_second() const {
  if (epoch_rates.empty()) return 0;
  std::vector<double> sorted = epoch_rates;
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

std::string Report::text() const {
  const auto mb = [](double bytes) { return bytes * 1e-6; };
  const uint64_t epochs = std::max<uint64_t>(work.epochs, 1);
  std::string out = fmt::format(
      "\n{} log records/s by one logger ({}), {:.1f} s of its work, {} workers\n"
      "machine: {}, {} cores, {} memory, {}\n"
      "records: {}, {:.1f} bytes each, including headers and gaps\n"
      "files: {}, {} each, in {}\n",
      bench::format_rate(work.records_per_second()), name_of(options.backend), work.seconds(),
      options.workers, machine.cpu, machine.cores, bench::format_bytes(machine.memory_bytes),
      machine.kernel, source, recorded_bytes_per_record, storage,
      bench::format_bytes(options.file_bytes), directory);
  out += fmt::format("  {} records in {} epochs, {} written: {:.0f} MB/s\n",
                     bench::format_count(work.records), bench::format_count(work.epochs),
                     bench::format_bytes(work.written.bytes), mb(work.bytes_per_second()));
  out +=
      fmt::format("  median of the epochs: {} records/s; with making files ahead: {} records/s\n",
                  bench::format_rate(work.median_records_per_second()),
                  bench::format_rate(work.records_per_second_with_files()));
  out += fmt::format(
      "  ns per record: {:.1f} = headers and checksums {:.1f} + write {:.1f} + sync {:.1f}\n",
      work.ns_per_record(work.close_ns), work.ns_per_record(work.stamp_ns()),
      work.ns_per_record(work.files.write_ns), work.ns_per_record(work.files.sync_ns));
  out += fmt::format(
      "  processor: {:.0f} % of a core; ns per record: user {:.1f}, system {:.1f}; "
      "{} records/s for a whole core\n",
      100 * work.cpu_share(), work.ns_per_record(work.user_ns), work.ns_per_record(work.system_ns),
      bench::format_rate(1e9 / work.ns_per_record(work.user_ns + work.system_ns)));
  out += fmt::format("  an epoch: {} records, {} in {:.1f} writes, {:.1f} syncs\n",
                     bench::format_count(work.records / epochs),
                     bench::format_bytes(work.written.bytes / epochs),
                     static_cast<double>(work.files.writes) / static_cast<double>(epochs),
                     static_cast<double>(work.files.syncs) / static_cast<double>(epochs));
  if (is_interrupted) out += "interrupted\n";
  if (!verify_done) out += "verify: not done: this backend discards the data\n";
  if (verified()) {
    out += "verify: `atoll wal verify` finds every block and record, intact and durable\n";
  }
  for (const std::string& violation : violations) out += "verify: " + violation + "\n";
  return out;
}

nlohmann::json Report::json() const {
  return {{"schema_version", bench::kReportSchemaVersion},
          {"benchmark", "log"},
          {"records_per_second", work.records_per_second()},
          {"median_records_per_second", work.median_records_per_second()},
          {"records_per_second_with_files", work.records_per_second_with_files()},
          {"bytes_per_second", work.bytes_per_second()},
          {"cpu_share", work.cpu_share()},
          {"records", work.records},
          {"epochs", work.epochs},
          {"bytes", work.written.bytes},
          {"seconds", work.seconds()},
          {"writes", work.files.writes},
          {"syncs", work.files.syncs},
          {"files", work.written.files},
          {"ns_per_record",
           {{"all", work.ns_per_record(work.close_ns)},
            {"stamp", work.ns_per_record(work.stamp_ns())},
            {"write", work.ns_per_record(work.files.write_ns)},
            {"sync", work.ns_per_record(work.files.sync_ns)},
            {"user", work.ns_per_record(work.user_ns)},
            {"system", work.ns_per_record(work.system_ns)}}},
          {"recording",
           {{"source", source},
            {"blocks", recorded_blocks},
            {"bytes_per_record", recorded_bytes_per_record}}},
          {"config",
           {{"backend", name_of(options.backend)},
            {"nvm_write_ns", options.nvm_write_ns},
            {"storage", storage},
            {"directory", directory},
            {"workers", options.workers},
            {"buffer_bytes", options.buffer_bytes},
            {"epoch_bytes", options.epoch_bytes},
            {"file_bytes", options.file_bytes},
            {"most_bytes", options.most_bytes},
            {"seconds", options.seconds}}},
          {"machine",
           {{"cpu", machine.cpu},
            {"cores", machine.cores},
            {"memory_bytes", machine.memory_bytes},
            {"kernel", machine.kernel}}},
          {"interrupted", is_interrupted},
          {"verify_done", verify_done},
          {"verified", verified()},
          {"violations", violations}};
}

}  // namespace atolldb::log_bench
