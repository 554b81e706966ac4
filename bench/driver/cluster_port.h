// What a driver needs of a cluster. Implemented on a launched or a running cluster; tests drive
// clusters of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/job/storage_spec.h"
#include "shared/error.h"

namespace atolldb::bench {

class ClusterPort {
 public:
  virtual ~ClusterPort() = default;

  virtual uint32_t node_count() const = 0;
  virtual uint32_t worker_count() const = 0;  // of all nodes
  /// "processes" or "threads"
  virtual std::string mode() const = 0;
  /// "off", "durable", ...: stands beside every figure.
  virtual std::string durability() const = 0;
  virtual Result<void> create_storage(const StorageSpec& spec) = 0;
  /// Runs the job on all workers and waits; one output a worker, by node, then worker.
  virtual Result<std::vector<std::string>> run_job(const std::string& name,
                                                   const std::string& input) = 0;
  /// Commits of all workers so far. May be called while another thread is in run_job.
  virtual uint64_t commits() = 0;
  /// The current epoch: what commits from now on is in it or later. 0: not known.
  virtual uint64_t epoch() = 0;
};

}  // namespace atolldb::bench
