// Options of `atoll bench ycsb`, and their checks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/driver/client_options.h"
#include "bench/driver/options.h"
#include "bench/ycsb/job_input.h"
#include "shared/base/error.h"

namespace atolldb::ycsb {

inline constexpr const char* kCommand = "bench ycsb";

struct Options : bench::CommonOptions {
  std::string workload;  // empty: `mix` if given, else A
  std::string mix;       // empty: the mix of the workload
  uint64_t records = 1'000'000;
  uint32_t record_bytes = 100;
  uint32_t fields = 1;
  std::string distribution;  // empty: that of the workload, or zipfian for a mix
  double theta = 0.99;
  std::optional<uint32_t> remote_percent;  // no value: all partitions with equal probability
  uint32_t operations = 1;                 // per transaction
  uint32_t scan_length = 100;
  std::string storage = "mastertree";
  std::string insert_order = "hashed";
  bool prefetch = true;
  bool blind_updates = false;
  bench::ClientOptions clients;

  /// Returns "A" for example, or "custom" for a mix.
  std::string workload_name() const;
};

/// Returns the input of all jobs, except the times of a run. Returns an error for options that are
/// wrong on every cluster.
Result<JobInput> job_input(const Options& options);

/// Checks the options against the cluster that will serve them.
Result<void> check_cluster(const Options& options, uint32_t nodes);

}  // namespace atolldb::ycsb
