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
  /// First part: creates and loads the storages.
  Result<void> load_database();
  /// Second part: runs, survey, verification. `runs_before`: runs since the load; with such runs
  /// the verification is left out, because this driver does not know what they committed.
  Result<Report> resume(uint64_t runs_before = 0);
  /// Only the verification. `updates`: those committed since the load. REQUIRES: no run is under
  /// way.
  Result<bench::ReportHead> check(uint64_t updates);

 private:
  Result<std::vector<VerifyResult>> verify();

  bench::ClusterPort& cluster_;
  bench::Console console_;
  JobInput input_;
  Report report_;
};

// The phases one by one, on a cluster that runs on (bench/driver/prepared.h).

/// Loads the database and stores the options of the load. Returns a usage error if it is loaded.
Result<void> prepare(bench::ClusterPort& cluster, const Options& options,
                     const bench::Console& console);
/// Runs the benchmark on the prepared database. `options`: those of the load are replaced.
Result<Report> run_prepared(bench::ClusterPort& cluster, Options options,
                            const bench::Console& console);
/// Verifies the prepared database.
Result<bench::ReportHead> verify_prepared(bench::ClusterPort& cluster,
                                          const bench::Console& console);
/// Drops the storages of the benchmark. Returns their number.
Result<uint32_t> clean_up(bench::ClusterPort& cluster);

}  // namespace atolldb::ycsb
