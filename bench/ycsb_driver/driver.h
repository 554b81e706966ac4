// The phases of YCSB on a cluster that is up: storages, load, warm-up and runs, survey, verify.
#pragma once

#include "bench/driver/phases.h"
#include "bench/ycsb_driver/options.h"
#include "bench/ycsb_driver/report.h"

namespace atolldb::ycsb {

class Driver {
 public:
  /// `input` comes from `job_input(options)`, and `check_cluster` had nothing against them.
  Driver(bench::ClusterPort& cluster, const Options& options, const JobInput& input,
         bench::Console console);

  /// The report is complete as far as the benchmark came: a run that ended early, or violations,
  /// are in the report, not errors.
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

/// What the program ends with: 0; resources when a run ended early; corruption for violations.
inline ExitCode exit_code_of(const Report& report) {
  return bench::exit_code_of(report, report.ended_early());
}

}  // namespace atolldb::ycsb
