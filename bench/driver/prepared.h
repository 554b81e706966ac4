// What `atoll bench ... prepare` has loaded. The database keeps it, so that later runs, also after
// restarts of the cluster, need no options of the load.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "bench/driver/cluster_port.h"
#include "shared/base/error.h"

namespace atolldb::bench {

/// Storage with one record per benchmark.
inline constexpr const char* kPreparedStorage = "bench_prepared";

struct Prepared {
  std::string benchmark;   // "tpcc" or "ycsb"
  nlohmann::json options;  // of the load; the benchmark defines the members
  uint32_t nodes = 0;
  uint64_t runs = 0;     // runs since the load; the next one has number runs + 1
  uint64_t updates = 0;  // YCSB: committed updates since the load
  /// YCSB: `updates` is the sum of the counts in the records. False after blind updates, and after
  /// a run that was killed.
  bool counts_updates = true;
};

/// Returns an error with the way out if the benchmark is not prepared, or if the cluster has
/// another number of nodes now.
Result<Prepared> load_prepared(ClusterPort& cluster, const std::string& benchmark);
/// Creates the storage if it is missing.
Result<void> store_prepared(ClusterPort& cluster, const Prepared& prepared);

/// Returns an error with the way out if one of these storages exists.
Result<void> check_absent(ClusterPort& cluster, std::string_view command,
                          std::span<const StorageSpec> specs);
/// Drops those of the storages that exist, and forgets what was prepared. Returns their number.
Result<uint32_t> clean_up(ClusterPort& cluster, const std::string& benchmark,
                          std::span<const StorageSpec> specs);

}  // namespace atolldb::bench
