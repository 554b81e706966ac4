// The phases of YCSB one by one, on a cluster that runs on.
#include "bench/driver/prepared.h"

#include <fmt/format.h>

#include "bench/ycsb/table.h"
#include "bench/ycsb_driver/driver.h"
#include "shared/base/try.h"

namespace atolldb::ycsb {
namespace {

constexpr const char* kYcsb = "ycsb";

nlohmann::json options_of_load(const Options& options) {
  return {{"records", options.records},
          {"record_bytes", options.record_bytes},
          {"fields", options.fields},
          {"storage", options.storage},
          {"insert_order", options.insert_order}};
}

/// Replaces the options of the load by those that the database has. Returns the input of the jobs.
Result<JobInput> prepared_input(const bench::Prepared& prepared, Options& options) {
  try {
    const nlohmann::json& json = prepared.options;
    json.at("records").get_to(options.records);
    json.at("record_bytes").get_to(options.record_bytes);
    json.at("fields").get_to(options.fields);
    json.at("storage").get_to(options.storage);
    json.at("insert_order").get_to(options.insert_order);
  } catch (const nlohmann::json::exception& error) {
    return make_error(ExitCode::failed, fmt::format("bench ycsb: the options of the load cannot be "
                                                    "read: {}: run `atoll bench ycsb cleanup`",
                                                    error.what()));
  }
  return job_input(options);
}

}  // namespace

Result<void> prepare(bench::ClusterPort& cluster, const Options& options,
                     const bench::Console& console) {
  ATOLL_ASSIGN(const JobInput input, job_input(options));
  ATOLL_TRY(check_cluster(options, cluster.node_count()));
  ATOLL_TRY(bench::check_absent(cluster, kCommand, storage_specs(input, cluster.node_count())));
  ATOLL_TRY(Driver(cluster, options, input, console).load_database());
  bench::Prepared prepared;
  prepared.benchmark = kYcsb;
  prepared.options = options_of_load(options);
  prepared.nodes = cluster.node_count();
  return bench::store_prepared(cluster, prepared);
}

Result<Report> run_prepared(bench::ClusterPort& cluster, Options options,
                            const bench::Console& console) {
  ATOLL_ASSIGN(bench::Prepared prepared, bench::load_prepared(cluster, kYcsb));
  ATOLL_ASSIGN(const JobInput input, prepared_input(prepared, options));
  ATOLL_TRY(check_cluster(options, cluster.node_count()));
  const uint64_t runs_before = prepared.runs;
  const bool counted_before = prepared.counts_updates;
  // Stored first: if the run is killed, its numbers are used, and its updates are unknown.
  prepared.runs += options.repeat;
  prepared.counts_updates = false;
  ATOLL_TRY(bench::store_prepared(cluster, prepared));
  options.verify = false;
  ATOLL_ASSIGN(Report report, Driver(cluster, options, input, console).resume(runs_before));
  prepared.counts_updates = counted_before && !input.blind_updates;
  for (const auto& run : report.runs) prepared.updates += run->updates;
  ATOLL_TRY(bench::store_prepared(cluster, prepared));
  return report;
}

Result<bench::ReportHead> verify_prepared(bench::ClusterPort& cluster,
                                          const bench::Console& console) {
  ATOLL_ASSIGN(const bench::Prepared prepared, bench::load_prepared(cluster, kYcsb));
  Options options;
  options.workload = "C";  // valid for each storage
  ATOLL_ASSIGN(JobInput input, prepared_input(prepared, options));
  input.blind_updates = !prepared.counts_updates;
  return Driver(cluster, options, input, console).check(prepared.updates);
}

Result<uint32_t> clean_up(bench::ClusterPort& cluster) {
  return bench::clean_up(cluster, kYcsb, storage_specs(JobInput(), cluster.node_count()));
}

}  // namespace atolldb::ycsb
