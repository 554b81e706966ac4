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

  /// Runs all phases. A run that ended early, or a violation, is reported and is not an error.
  Result<Report> go();

 private:
  Result<void> verify();

  bench::ClusterPort& cluster_;
  bench::Console console_;
  JobInput input_;
  Report report_;
};

}  // namespace atolldb::ycsb
