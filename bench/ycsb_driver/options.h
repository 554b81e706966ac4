// What `atoll bench ycsb` can be told, and the checks of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/driver/options.h"
#include "bench/ycsb/job_input.h"
#include "shared/error.h"

namespace atolldb::ycsb {

inline constexpr const char* kCommand = "bench ycsb";

struct Options : bench::CommonOptions {
  std::string workload;  // empty: A, or what `mix` says
  std::string mix;       // empty: the workload's
  uint64_t records = 1'000'000;
  uint32_t record_bytes = 100;
  uint32_t fields = 1;
  std::string distribution;  // empty: the workload's; zipfian with a mix
  double theta = 0.99;
  std::optional<uint32_t> remote_percent;  // none: the partitions of all nodes alike
  uint32_t operations = 1;                 // a transaction
  uint32_t scan_length = 100;
  std::string storage = "mastertree";
  std::string insert_order = "hashed";
  bool prefetch = true;

  /// "A", or "custom" for a mix.
  std::string workload_name() const;
};

/// Input of all jobs, but for the times of a run. Error: what the options say that does not work,
/// whatever the cluster.
Result<JobInput> job_input(const Options& options);

/// Checks the options against the cluster that will serve them.
Result<void> check_cluster(const Options& options, uint32_t nodes);

}  // namespace atolldb::ycsb
