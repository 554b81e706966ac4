// The cluster that a benchmark runs on: one that runs already, or one of its own.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "bench/driver/cluster_port.h"
#include "bench/driver/options.h"
#include "ops/cli/cluster_finder.h"
#include "ops/cluster/cluster.h"
#include "shared/process/unique_fd.h"

namespace atolldb::cli {

/// What the driver sees of a cluster.
class BenchPort final : public bench::ClusterPort {
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

 private:
  Cluster& cluster_;
};

/// A new folder: `stem` with six characters more. `what_to_do`: against a place that cannot be
/// written.
Result<std::string> new_folder(const std::filesystem::path& stem, const char* what_to_do);

/// The running cluster to use: the chosen one; with neither choice nor sizes given the only one.
/// Null: start one. `command` is what errors begin with.
Result<std::unique_ptr<Cluster>> find_bench_cluster(const ClusterChoice& choice,
                                                    const std::string& command,
                                                    const bench::CommonOptions& options);

/// The config of a cluster of the benchmark's own: the file's or the defaults, with the sizes of
/// the command line. Its data goes into new folders (own_folders); without a file its logs, too,
/// and `name` is its name.
Result<Config> config_of_bench_cluster(const ClusterChoice& choice, const std::string& name,
                                       const bench::CommonOptions& options);

/// Those folders of a cluster of the benchmark's own, to be removed after it.
std::vector<std::string> own_folders(const ClusterChoice& choice, const Config& config);

/// Stops a cluster of our own in order at the first SIGINT or SIGTERM, at once at the second.
/// REQUIRES: the signals are blocked in all threads.
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
