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
  /// database. REQUIRES: the options are the same as for load_database.
  Result<Report> resume();

 private:
  Result<void> verify();

  ClusterPort& cluster_;
  Console console_;
  JobInput input_;
  Report report_;
};

}  // namespace atolldb::tpcc
