// The phases of `atoll bench ycsb` on a running cluster: storages, load, warm-up and runs, survey,
// verification.
#pragma once

#include "bench/driver/phases.h"
#include "bench/ycsb_driver/options.h"
#include "bench/ycsb_driver/report.h"

namespace atolldb::ycsb {

class Driver {
 public:
  /// REQUIRES: `input` comes from job_input(options), and check_cluster returned no error.
  Driver(bench::ClusterPort& cluster, const Options& options, const JobInput& input,
         bench::Console console);

  /// Runs all phases. A run that ended early and violations are in the report; they are no errors.
  Result<Report> go();

 private:
  Result<void> create_storages();
  Result<void> load();
  Result<void> run_once(uint32_t number);
  Result<void> verify();

  bench::ClusterPort& cluster_;
  bench::Console console_;
  JobInput input_;
  Report report_;
};

/// Returns the exit code: success, resources if a run ended early, corruption for violations.
inline ExitCode exit_code_of(const Report& report) {
  return bench::exit_code_of(report, report.ended_early());
}

}  // namespace atolldb::ycsb
