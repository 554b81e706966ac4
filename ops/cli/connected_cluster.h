// A cluster in the network, with the interface of `Cluster`: a session with each of its nodes
// carries the control requests (shared/network/PROTOCOL.md). For benchmarks with --connect.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ops/cli/bench_cluster.h"
#include "ops/cluster/cluster.h"
#include "ops/shell/connection.h"
#include "shared/client/client_transport.h"
#include "shared/client/connection_string.h"

namespace atolldb::cli {

class ConnectedCluster final : public Cluster {
 public:
  /// Connects to the nodes, which may be in any order. `command`: prefix of errors. Errors: usage
  /// unless the targets are all nodes of one cluster, each once; those of connect_to. REQUIRES:
  /// there is a target, and all are in the network.
  static Result<std::unique_ptr<ConnectedCluster>> connect(
      const std::vector<ConnectionTarget>& targets, const std::string& command);

  /// Both ignore the timeout: a request ends with its answer or with its session.
  Result<Json> call(uint32_t node, ControlOperation operation, const Json& body,
                    std::chrono::milliseconds timeout) override;
  Result<Json> coordinator(ControlOperation operation, const Json& body,
                           std::chrono::milliseconds timeout) override;
  /// Returns an error: there is no session through shared memory.
  Result<std::unique_ptr<SessionClient>> connect_session(uint32_t node) override;
  /// Does nothing: the process that started the cluster stops it.
  Result<void> shutdown() override { return {}; }

  /// Opens another session with a node. REQUIRES: there is such a node.
  Result<std::unique_ptr<ClientTransport>> open_session(uint32_t node) const;
  /// Returns the durability as the status of the cluster says it.
  const std::string& durability() const { return durability_; }
  /// Returns whether the keys of the sessions have the rights that jobs need.
  bool may_run_jobs() const { return may_run_jobs_; }

 private:
  struct Member {
    ConnectionTarget target;
    std::unique_ptr<shell::Connection> connection;
    Json status;  // of the cluster
    uint32_t node = 0;
    bool may_run_jobs = false;
  };

  ConnectedCluster(Config config, std::vector<Member> members);
  static Result<Member> connect_member(const ConnectionTarget& target);
  Result<Json> ask(uint32_t node, ControlOperation operation, const Json& body);
  /// Asks for a list until it is complete (shell::whole_list).
  Result<Json> ask_for_list(uint32_t node, ControlOperation operation, const char* list,
                            const char* key);
  Result<Json> state_of_job(uint32_t node, const Json& body);

  std::mutex mutex_;             // `ask` holds it: progress of a run is asked by another thread
  std::vector<Member> members_;  // by node
  const std::string durability_;
  const bool may_run_jobs_;
};

/// Gives a benchmark driver access to a cluster in the network.
class ConnectedPort final : public BenchPort {
 public:
  /// REQUIRES: `cluster` outlives the port.
  explicit ConnectedPort(ConnectedCluster& cluster) : BenchPort(cluster), connected_(cluster) {}

  std::string mode() const override { return "network"; }
  std::string durability() const override { return connected_.durability(); }
  bool may_run_jobs() const override { return connected_.may_run_jobs(); }
  Result<std::unique_ptr<bench::Transport>> connect(uint32_t node,
                                                    const bench::ClientRoute& route) override;

 protected:
  Result<std::unique_ptr<ClientTransport>> open_session(uint32_t node) override {
    return connected_.open_session(node);
  }

 private:
  ConnectedCluster& connected_;
};

}  // namespace atolldb::cli
