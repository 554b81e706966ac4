// A driver's interface to a cluster. `atoll` implements it for clusters that it launches or finds
// running. Tests implement it for their own clusters.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/driver/transport.h"
#include "bench/job/storage_spec.h"
#include "shared/base/error.h"

namespace atolldb::bench {

class ClusterPort {
 public:
  virtual ~ClusterPort() = default;

  virtual uint32_t node_count() const = 0;
  virtual uint32_t worker_count() const = 0;  // of all nodes
  /// Returns "processes" or "threads"; or "network", if the cluster is reached over it.
  virtual std::string mode() const = 0;
  /// Returns the durability mode, for example "off" or "durable". Every report prints it.
  virtual std::string durability() const = 0;
  virtual Result<void> create_storage(const StorageSpec& spec) = 0;
  /// Runs the job on all workers and waits. Returns one output per worker, by node, then worker.
  virtual Result<std::vector<std::string>> run_job(const std::string& name,
                                                   const std::string& input) = 0;
  /// Returns the number of commits of all workers so far. Thread: any. Another thread may be in
  /// run_job.
  virtual uint64_t commits() = 0;
  /// Returns the current epoch: later commits have this epoch or a later one. 0: unknown.
  virtual uint64_t epoch() = 0;
  /// Returns the bytes of all pools for which the nodes have not yet allocated memory. Nodes do
  /// that while processors are idle. 0: none, or unknown.
  virtual uint64_t unallocated_pool_bytes() { return 0; }
  /// Returns the member "acknowledgement" of the cluster's status with the buckets of histograms
  /// (coordinator/README.md), and the slowest epoch from `epoch` on. Null: unknown.
  virtual nlohmann::json acknowledgement([[maybe_unused]] uint64_t epoch) { return nullptr; }

  /// Returns whether run_job is allowed. A client in the network needs the rights `procedures` and
  /// `administration`, and may run some jobs only (shared/network/PROTOCOL.md).
  virtual bool may_run_jobs() const { return true; }

  // The functions below are for benchmarks on a cluster that runs on, and for clients.
  /// Returns the names of all storages.
  virtual Result<std::vector<std::string>> storage_names() { return unsupported("storages"); }
  virtual Result<void> drop_storage([[maybe_unused]] const std::string& name) {
    return unsupported("storages");
  }
  /// Returns the value of a text key in a Master-tree, or "" if the storage or the key is missing.
  virtual Result<std::string> get_text([[maybe_unused]] const std::string& storage,
                                       [[maybe_unused]] const std::string& key) {
    return unsupported("records");
  }
  virtual Result<void> put_text([[maybe_unused]] const std::string& storage,
                                [[maybe_unused]] const std::string& key,
                                [[maybe_unused]] const std::string& value) {
    return unsupported("records");
  }
  /// Opens a connection of a client. Thread: any.
  virtual Result<std::unique_ptr<Transport>> connect([[maybe_unused]] uint32_t node,
                                                     [[maybe_unused]] const ClientRoute& route) {
    return unsupported("clients");
  }

 private:
  static std::unexpected<Error> unsupported(const char* what) {
    return make_error(ExitCode::failed, std::string("bench: this cluster has no ") + what);
  }
};

}  // namespace atolldb::bench
