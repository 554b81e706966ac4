// A cluster inside a program, for embedding, benchmarks and tests. The same Node and Coordinator
// objects run as threads of this process or in processes of their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"
#include "shared/client/session_client.h"
#include "shared/config/config.h"
#include "shared/memory/cluster_view.h"
#include "shared/memory/control_layout.h"
#include "shared/message/control_message.h"

namespace atolldb {

enum class LaunchMode : uint8_t {
  process,  // child processes, supervised by a thread; sockets in cluster.run_dir
  thread,   // all threads of this process, over one mapping; no run folder, no sockets
};

/// The output of one worker of a job.
struct JobOutput {
  uint32_t node = 0;
  uint32_t worker = 0;
  Result<std::string> output;
};

/// Thread safe, except shutdown and destruction.
class Cluster {
 public:
  static constexpr std::chrono::milliseconds kDefaultTimeout{60'000};

  /// Returns when the cluster runs. Returns an error if the config has a value that no config file
  /// may have. `binary_dir`: folder of atoll-node and atoll-coordinator in process mode; empty: the
  /// folder of this program.
  static Result<std::unique_ptr<Cluster>> launch(const Config& config, LaunchMode mode,
                                                 const std::string& binary_dir = "");
  virtual ~Cluster() = default;
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Sends a control request to a node (soc/README.md) or to the coordinator
  /// (coordinator/README.md). If a process of the cluster has died, the error names it and how it
  /// ended.
  virtual Result<Json> call(uint32_t node, ControlOperation operation, const Json& body,
                            std::chrono::milliseconds timeout = kDefaultTimeout) = 0;
  virtual Result<Json> coordinator(ControlOperation operation, const Json& body,
                                   std::chrono::milliseconds timeout = kDefaultTimeout) = 0;

  /// Opens a session of this process with a node.
  virtual Result<std::unique_ptr<SessionClient>> connect_session(uint32_t node) = 0;

  /// Runs a job on all workers of all nodes and waits for its end. The outputs are ordered by node
  /// and worker.
  Result<std::vector<JobOutput>> run_job(std::string_view name, std::string_view input);
  /// Does the same with an input for each node.
  Result<std::vector<JobOutput>> run_job(std::string_view name,
                                         const std::vector<std::string>& input_of_node);

  /// Returns the id of the new storage.
  Result<uint32_t> create_storage(std::string_view name, StorageType type,
                                  uint32_t payload_bytes = 0, uint64_t record_count = 0);
  Result<void> drop_storage(std::string_view name);

  /// Returns the mapping that all nodes share in thread mode, or null in process mode.
  virtual const ClusterView* view() const { return nullptr; }
  const Config& config() const { return config_; }
  uint32_t node_count() const { return static_cast<uint32_t>(config_.nodes.size()); }

  /// Stops the cluster in order. Returns an error if a process died instead. The destructor also
  /// calls this function.
  virtual Result<void> shutdown() = 0;

 protected:
  explicit Cluster(Config config) : config_(std::move(config)) {}
  std::unexpected<Error> no_such_node(uint32_t node) const;

  const Config config_;
};

}  // namespace atolldb
