// Options of `atoll bench ycsb`, and their checks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/driver/options.h"
#include "bench/ycsb/job_input.h"
#include "shared/base/error.h"

namespace atolldb::ycsb {

inline constexpr const char* kCommand = "bench ycsb";

/// Who runs the operations: jobs on the workers, or clients in this process.
struct ClientOptions {
  std::string client = "node";          // "node": jobs; "local": clients with local sessions
  uint32_t clients = 0;                 // 0: one per worker
  uint32_t pipeline = 64;               // requests in flight of each client
  std::string acknowledge = "durable";  // when a request counts: "durable" or "visible"

  bool is_used() const { return client != "node"; }
  static constexpr uint32_t kMaxPipeline = 256;
  static constexpr uint32_t kMaxClientsPerNode = 60;  // a node has 64 sessions
};

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
  ClientOptions clients;

  /// Returns "A" for example, or "custom" for a mix.
  std::string workload_name() const;
};

/// Returns the input of all jobs, except the times of a run. Returns an error for options that are
/// wrong on every cluster.
Result<JobInput> job_input(const Options& options);

/// Checks the options against the cluster that will serve them.
Result<void> check_cluster(const Options& options, uint32_t nodes);

}  // namespace atolldb::ycsb
