// The phases of TPC-C one by one, on a cluster that runs on.
#include "bench/driver/prepared.h"

#include <fmt/format.h>

#include "bench/tpcc/tables.h"
#include "bench/tpcc_driver/driver.h"
#include "shared/base/try.h"

namespace atolldb::tpcc {
namespace {

constexpr const char* kBenchmark = "tpcc";

nlohmann::json load_options(const Options& options, uint32_t warehouses) {
  return {{"warehouses", warehouses},
          {"seed", options.seed},
          {"items", options.scale.items},
          {"customers", options.scale.customers},
          {"new_orders", options.scale.new_orders},
          {"last_names", options.scale.last_names},
          {"max_lines", options.scale.max_lines},
          {"hash_orders", options.scale.hash_orders}};
}

/// Replaces the options of the load by those that the database has.
Result<void> take_load_options(const bench::Prepared& prepared, Options& options) {
  try {
    const nlohmann::json& json = prepared.options;
    json.at("warehouses").get_to(options.warehouses);
    options.load_seed = json.at("seed").get<uint64_t>();
    json.at("items").get_to(options.scale.items);
    json.at("customers").get_to(options.scale.customers);
    json.at("new_orders").get_to(options.scale.new_orders);
    json.at("last_names").get_to(options.scale.last_names);
    json.at("max_lines").get_to(options.scale.max_lines);
    json.at("hash_orders").get_to(options.scale.hash_orders);
  } catch (const nlohmann::json::exception& error) {
    return make_error(ExitCode::failed, fmt::format("bench tpcc: the options of the load cannot be "
                                                    "read: {}: run `atoll bench tpcc cleanup`",
                                                    error.what()));
  }
  return check_options(options);
}

}  // namespace

Result<void> prepare(ClusterPort& cluster, const Options& options, const Console& console) {
  ATOLL_ASSIGN(const uint32_t warehouses,
               choose_warehouses(options, cluster.node_count(), cluster.worker_count()));
  ATOLL_TRY(bench::check_absent(cluster, kCommand, storage_specs(warehouses, options.scale)));
  ATOLL_TRY(Driver(cluster, options, warehouses, console).load_database());
  bench::Prepared prepared;
  prepared.benchmark = kBenchmark;
  prepared.options = load_options(options, warehouses);
  prepared.nodes = cluster.node_count();
  return bench::store_prepared(cluster, prepared);
}

Result<Report> run_prepared(ClusterPort& cluster, Options options, const Console& console) {
  // Checked before the runs: after them, their report would be lost.
  if (options.verify && !cluster.may_run_jobs()) {
    return bench::usage_error(kCommand, "--verify",
                              "runs jobs, for which the client's key lacks the right procedures or "
                              "administration",
                              "use a key with both, or no --verify");
  }
  ATOLL_ASSIGN(bench::Prepared prepared, bench::load_prepared(cluster, kBenchmark));
  ATOLL_TRY(take_load_options(prepared, options));
  const uint64_t runs_before = prepared.runs;
  // Stored first: a run that is killed has used its numbers, too.
  prepared.runs += options.repeat;
  ATOLL_TRY(bench::store_prepared(cluster, prepared));
  return Driver(cluster, options, options.warehouses, console).resume(runs_before);
}

Result<bench::ReportHead> verify_prepared(ClusterPort& cluster, const Console& console) {
  ATOLL_ASSIGN(const bench::Prepared prepared, bench::load_prepared(cluster, kBenchmark));
  Options options;
  ATOLL_TRY(take_load_options(prepared, options));
  return Driver(cluster, options, options.warehouses, console).check();
}

Result<uint32_t> clean_up(ClusterPort& cluster) {
  return bench::clean_up(cluster, kBenchmark, storage_specs(1, Scale()));
}

}  // namespace atolldb::tpcc
