#include "bench/ycsb_driver/options.h"
#include "shared/base/try.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace atolldb::ycsb {

namespace {

std::unexpected<Error> usage(std::string_view flag, const std::string& why,
                             const std::string& what_to_do) {
  return bench::usage_error(kCommand, flag, why, what_to_do);
}

Result<void> choose_mix(const Options& options, JobInput& input) {
  if (!options.mix.empty()) {
    if (!options.workload.empty()) {
      return usage("--mix", fmt::format("--workload {} has a mix of its own", options.workload),
                   "give only one of the two");
    }
    input.distribution = Distribution::zipfian;
    return bench::parse_mix(kCommand, options.mix, ':',
                            "give the percentages of read, update, insert, scan and "
                            "read-modify-write, for example 80:20:0:0:0",
                            input.mix);
  }
  const Workload* workload = find_workload(options.workload.empty() ? "A" : options.workload);
  if (workload == nullptr) {
    return usage("--workload", fmt::format("'{}' is not a workload", options.workload),
                 "use A, B, C, D, E, F or silor, or --mix");
  }
  input.mix = workload->mix;
  input.distribution = workload->distribution;
  return {};
}

Result<void> choose_distribution(const Options& options, JobInput& input) {
  // Also refuses NaN.
  if (!(options.theta > 0 && options.theta < 1)) {
    return usage("--theta", fmt::format("{} is out of range", options.theta),
                 "use more than 0 and less than 1, or --distribution uniform");
  }
  if (options.distribution.empty()) return {};
  const auto* found = std::ranges::find(kDistributionNames, std::string_view(options.distribution));
  if (found == std::end(kDistributionNames)) {
    return usage("--distribution", fmt::format("'{}' is not a distribution", options.distribution),
                 "use uniform, zipfian or latest");
  }
  input.distribution = static_cast<Distribution>(found - std::begin(kDistributionNames));
  return {};
}

Result<void> choose_storage(const Options& options, JobInput& input) {
  if (options.storage != "mastertree" && options.storage != "array" && options.storage != "hash") {
    return usage("--storage", fmt::format("'{}' is not a storage", options.storage),
                 "use mastertree, array or hash");
  }
  if (options.insert_order != "hashed" && options.insert_order != "ordered") {
    return usage("--insert-order", fmt::format("'{}' is not an order", options.insert_order),
                 "use hashed or ordered");
  }
  input.is_array = options.storage == "array";
  input.is_hash = options.storage == "hash";
  input.is_ordered = options.insert_order == "ordered";
  if (input.is_array && percent_of(input.mix, Operation::insert) != 0) {
    return usage("--storage",
                 fmt::format("'array' has a fixed number of records, and {} % are inserts",
                             percent_of(input.mix, Operation::insert)),
                 "use mastertree or hash, or a workload without inserts");
  }
  if (input.is_hash && percent_of(input.mix, Operation::scan) != 0) {
    return usage("--storage",
                 fmt::format("'hash' has no order of keys, and {} % are scans",
                             percent_of(input.mix, Operation::scan)),
                 "use mastertree, or a workload without scans");
  }
  return {};
}

Result<void> choose_shape(const Options& options, JobInput& input) {
  input.shape = {options.record_bytes, options.fields};
  if (options.record_bytes % options.fields != 0) {
    return usage(
        "--fields",
        fmt::format("{} fields do not divide {} bytes", options.fields, options.record_bytes),
        "use a divisor of --record-bytes");
  }
  if (input.shape.field_bytes() >= kMinFieldBytes) return {};
  return usage("--fields",
               fmt::format("{} fields of {} bytes are too small: a field has at least {}",
                           options.fields, input.shape.field_bytes(), kMinFieldBytes),
               fmt::format("use at most {}", options.record_bytes / kMinFieldBytes));
}

Result<void> check_clients(const Options& options, JobInput& input) {
  ATOLL_TRY(bench::check_clients(kCommand, options.clients));
  if (!options.clients.is_used()) return {};
  if (options.operations != 1 || percent_of(input.mix, Operation::insert) != 0 ||
      percent_of(input.mix, Operation::scan) != 0) {
    return usage("--client", "clients run single operations, and no inserts and scans",
                 "use workload A, B, C or F without --operations");
  }
  return {};
}

}  // namespace

std::string Options::workload_name() const {
  if (!mix.empty()) return "custom";
  return workload.empty() ? "A" : workload;
}

Result<JobInput> job_input(const Options& options) {
  const bench::Range ranges[] = {
      {"--records", options.records, 1, kMaxRecords},
      {"--record-bytes", options.record_bytes, kMinFieldBytes, kMaxRecordBytes},
      {"--fields", options.fields, 1, kMaxFields},
      {"--remote-percent", options.remote_percent.value_or(0), 0, 100},
      {"--operations", options.operations, 1, kMaxOperations},
      {"--scan-length", options.scan_length, 1, kMaxScanLength},
  };
  JobInput input;
  Result<void> checked = bench::check_common_options(kCommand, options);
  if (checked) checked = bench::check_ranges(kCommand, ranges);
  for (const auto choose : {choose_mix, choose_distribution, choose_storage, choose_shape}) {
    if (checked) checked = choose(options, input);
  }
  if (checked && options.blind_updates && input.is_array) {
    checked = usage("--blind-updates", "an update of an array reads the page of its record",
                    "use --storage mastertree or hash");
  }
  if (checked) checked = check_clients(options, input);
  ATOLL_TRY(checked);
  input.records = options.records;
  input.seed = options.seed;
  input.theta = options.theta;
  input.remote_percent = options.remote_percent.value_or(kAllNodesAlike);
  input.operations = options.operations;
  input.scan_length = options.scan_length;
  input.prefetch = options.prefetch;
  // Updates of clients are blind, too.
  input.blind_updates = options.blind_updates || options.clients.is_used();
  return input;
}

Result<void> check_cluster(const Options& options, uint32_t nodes) {
  if (options.records < nodes) {
    return usage(
        "--records",
        fmt::format("{} records for {} nodes leave a node without one", options.records, nodes),
        fmt::format("use at least {}", nodes));
  }
  if (options.remote_percent.value_or(0) != 0 && nodes == 1) {
    return usage(
        "--remote-percent",
        fmt::format("{} % of the operations cannot be remote on one node", *options.remote_percent),
        "use 0, or more nodes");
  }
  return bench::check_client_count(kCommand, options.clients, nodes);
}

}  // namespace atolldb::ycsb
