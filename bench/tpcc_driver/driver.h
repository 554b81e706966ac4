// The phases of `atoll bench tpcc` on a running cluster: storages, load, warm-up and runs, survey,
// verification.
#pragma once

#include "bench/driver/phases.h"
#include "bench/tpcc_driver/options.h"
#include "bench/tpcc_driver/report.h"

namespace atolldb::tpcc {

using bench::ClusterPort;
using bench::Console;

class Driver {
 public:
  /// REQUIRES: the options are checked, and `warehouses` comes from choose_warehouses.
  Driver(ClusterPort& cluster, const Options& options, uint32_t warehouses, Console console);

  /// Runs all phases. A run that ended early, or a violated condition, is reported and is not an
  /// error.
  Result<Report> go();
  /// First part: creates and loads the storages.
  Result<void> load_database();
  /// Second part: runs, survey, verification. It may run on another cluster that has the same
  /// database. REQUIRES: the options are the same as for load_database. `runs_before`: runs since
  /// the load.
  Result<Report> resume(uint64_t runs_before = 0);
  /// Only the verification. REQUIRES: no run is under way.
  Result<bench::ReportHead> check();

 private:
  Result<void> verify();

  ClusterPort& cluster_;
  Console console_;
  JobInput input_;
  Report report_;
};

// The phases one by one, on a cluster that runs on (bench/driver/prepared.h).

/// Loads the database and stores the options of the load. Returns a usage error if it is loaded.
Result<void> prepare(ClusterPort& cluster, const Options& options, const Console& console);
/// Runs the benchmark on the prepared database. `options`: those of the load are replaced.
Result<Report> run_prepared(ClusterPort& cluster, Options options, const Console& console);
/// Verifies the prepared database.
Result<bench::ReportHead> verify_prepared(ClusterPort& cluster, const Console& console);
/// Drops the storages of the benchmark. Returns their number.
Result<uint32_t> clean_up(ClusterPort& cluster);

}  // namespace atolldb::tpcc
