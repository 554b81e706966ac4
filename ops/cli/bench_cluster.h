// The cluster that a benchmark runs on: a running one, or one that the benchmark starts.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "bench/driver/cluster_port.h"
#include "bench/driver/options.h"
#include "ops/cli/cluster_finder.h"
#include "ops/cluster/cluster.h"
#include "shared/base/unique_fd.h"
#include "shared/client/client_transport.h"

namespace atolldb::cli {

/// Gives a benchmark driver access to a cluster.
class BenchPort : public bench::ClusterPort {
 public:
  explicit BenchPort(Cluster& cluster) : cluster_(cluster) {}

  uint32_t node_count() const override { return cluster_.node_count(); }
  uint32_t worker_count() const override;
  std::string mode() const override { return "processes"; }
  std::string durability() const override { return durability_text(cluster_.config()); }
  Result<void> create_storage(const bench::StorageSpec& spec) override;
  Result<std::vector<std::string>> run_job(const std::string& name,
                                           const std::string& input) override;
  uint64_t commits() override;
  uint64_t epoch() override;
  uint64_t unallocated_pool_bytes() override;
  Json acknowledgement(uint64_t epoch) override;
  Result<std::vector<std::string>> storage_names() override;
  Result<void> drop_storage(const std::string& name) override {
    return cluster_.drop_storage(name);
  }
  Result<std::string> get_text(const std::string& storage, const std::string& key) override;
  Result<void> put_text(const std::string& storage, const std::string& key,
                        const std::string& value) override;
  Result<std::unique_ptr<bench::Transport>> connect(uint32_t node,
                                                    const bench::ClientRoute& route) override;

 protected:
  /// Opens a session for single records.
  virtual Result<std::unique_ptr<ClientTransport>> open_session(uint32_t node);

 private:
  /// Returns the address of a node's network port, as a connection string.
  Result<std::string> network_address(uint32_t node, const std::string& key_file);
  /// Returns the cluster's status, or an empty object if it does not answer in time.
  Json status(const Json& request = Json::object());

  Cluster& cluster_;
};

/// Makes a new folder, named `stem` with a suffix of six characters. `what_to_do`: advice in the
/// error if the folder cannot be made.
Result<std::string> new_folder(const std::filesystem::path& stem, const char* what_to_do);

/// Returns the running cluster to use. This is the chosen one, or the only one if neither choice
/// nor sizes are given. Returns null if the benchmark has to start one. `command`: prefix of the
/// errors.
Result<std::unique_ptr<Cluster>> find_bench_cluster(const ClusterChoice& choice,
                                                    const std::string& command,
                                                    const bench::CommonOptions& options);

/// Returns the config of the benchmark's own cluster: the file or the defaults, with the sizes of
/// the command line. Its data are in new folders (own_folders). Without a file, the name of the
/// cluster is `name`, and its logs are in a new folder, too, unless cluster.log_dir is set.
Result<Config> config_of_bench_cluster(const ClusterChoice& choice, const std::string& name,
                                       const bench::CommonOptions& options);

/// Returns the new folders of the benchmark's own cluster, which are removed after the run.
std::vector<std::string> own_folders(const ClusterChoice& choice, const Config& config);

/// Stops the benchmark's own cluster: in order at the first SIGINT or SIGTERM, at once at the
/// second. REQUIRES: the signals are blocked in all threads.
class InterruptWatch {
 public:
  InterruptWatch(Cluster& cluster, const UniqueFd& signals);
  ~InterruptWatch();

 private:
  void watch(Cluster& cluster, int signals);

  UniqueFd end_;
  std::thread thread_;
};

}  // namespace atolldb::cli
