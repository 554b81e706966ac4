// The phases of a benchmark on a cluster that is up: storages, load, warm-up and runs, survey,
// verify.
#pragma once

#include "bench/driver/phases.h"
#include "bench/tpcc_driver/options.h"
#include "bench/tpcc_driver/report.h"

namespace atolldb::tpcc {

using bench::ClusterPort;
using bench::Console;

class Driver {
 public:
  /// REQUIRES: options are checked, `warehouses` comes from choose_warehouses.
  Driver(ClusterPort& cluster, const Options& options, uint32_t warehouses, Console console);

  /// The report is complete as far as the benchmark came: a run that ended early, or violated
  /// conditions, are in the report, not errors.
  Result<Report> go();
  /// Its first part: storages and their records.
  Result<void> load_database();
  /// The rest, also on another cluster that has the database of an earlier one with the same
  /// options.
  Result<Report> resume();

 private:
  Result<void> create_storages();
  Result<void> load();
  Result<void> run_once(uint32_t number);
  Result<void> verify();

  ClusterPort& cluster_;
  Options options_;
  Console console_;
  JobInput input_;
  Report report_;
};

/// What the program ends with: 0; resources when a run ended early; corruption for violations.
inline ExitCode exit_code_of(const Report& report) {
  return bench::exit_code_of(report, report.ended_early());
}

}  // namespace atolldb::tpcc
