// A whole cluster in this process that starts stage by stage. A test can check it between the
// stages, and during the coordinator's requests to its nodes.
#pragma once

#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"
#include "ops/launcher/segment_set.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/client/session_client.h"
#include "shared/config/config.h"
#include "shared/memory/worker_metrics.h"
#include "soc/node/node.h"

namespace atolldb::test {

/// A small durable cluster with snapshots on request only. Epochs are long, so that a commit is not
/// durable for a while.
inline Config staged_config(uint32_t nodes, std::chrono::milliseconds epoch) {
  Config config = default_config();
  config.durability.mode = DurabilityMode::durable;
  config.cluster.epoch = epoch;
  config.gleaner.interval = std::chrono::hours(1);
  config.gleaner.disk_reserve = 1;
  config.nodes.assign(nodes, NodeConfig{});
  for (NodeConfig& node : config.nodes) node.workers = 2;
  config.memory.volatile_pool = uint64_t{16} << 20;
  config.memory.log_buffer = uint64_t{2} << 20;
  config.memory.exchange = uint64_t{2} << 20;
  config.durability.log_file_size = uint64_t{1} << 20;
  return config;
}

class StagedCluster {
 public:
  static constexpr std::chrono::seconds kPatience{60};

  explicit StagedCluster(uint32_t nodes,
                         std::chrono::milliseconds epoch = std::chrono::milliseconds(2))
      : StagedCluster(staged_config(nodes, epoch)) {}
  /// `logger` gets the messages of the coordinator.
  explicit StagedCluster(Config config, Logger logger = make_silent_logger("coordinator"))
      : config_(std::move(config)), logger_(std::move(logger)) {
    std::string folder = "/tmp/atoll-staged-XXXXXX";
    CHECK(mkdtemp(folder.data()) != nullptr);
    config_.cluster.data_dir = folder;
    make();
  }
  ~StagedCluster() {
    end();
    std::filesystem::remove_all(config_.cluster.data_dir);
  }
  StagedCluster(const StagedCluster&) = delete;
  StagedCluster& operator=(const StagedCluster&) = delete;

  /// Ends the cluster in order. Afterwards the stages of another incarnation can follow.
  void restart() {
    end();
    make();
  }

  /// Called before and after every request of the coordinator to a node. Thread: that of the
  /// request. REQUIRES: the test sets them before the cluster is open, or while no snapshot and no
  /// DDL is under way.
  std::function<void(uint32_t node, ControlOperation operation, const Json& body)> before_call;
  std::function<void(uint32_t node, ControlOperation operation, const Json& body)> after_call;

  /// Returns true if a request of the coordinator fails before it reaches the node. Thread: that of
  /// the request. REQUIRES: as for before_call.
  std::function<bool(ControlOperation operation)> fails_call;

  /// Runs all stages except the last one: the nodes run, and the cluster is not open.
  void start_nodes() {
    CHECK(coordinator_->prepare().has_value());
    for (const auto& node : nodes_) CHECK(node->prepare().has_value());
    CHECK(coordinator_->attach().has_value());
    for (const auto& node : nodes_) CHECK(node->attach().has_value());
    CHECK(coordinator_->start().has_value());
    for (const auto& node : nodes_) CHECK(node->start().has_value());
  }
  void open() { CHECK(coordinator_->open(Json::object()).has_value()); }
  void start() {
    start_nodes();
    open();
  }

  Result<Json> call(uint32_t node, ControlOperation operation, const Json& body) {
    return ask(*nodes_[node], operation, body).get();
  }
  Result<Json> coordinator(ControlOperation operation, const Json& body = Json::object()) {
    return ask(*coordinator_, operation, body).get();
  }
  Result<std::unique_ptr<SessionClient>> connect_session(uint32_t node) {
    ATOLL_ASSIGN(UniqueFd socket, nodes_[node]->connect_session());
    return SessionClient::over(std::move(socket));
  }
  /// Does the same as `coordinator`, without waiting for the answer.
  std::future<Result<Json>> begin_coordinator(ControlOperation operation, const Json& body) {
    return ask(*coordinator_, operation, body);
  }

  const Config& config() const { return config_; }
  ControlSegment& control() { return *coordinator_->control(); }
  /// REQUIRES: the cluster has started.
  MetricsSegment& metrics(uint32_t node) {
    const auto base = space_->attach(SegmentKind::metrics, node, true);
    CHECK(base.has_value());
    return *reinterpret_cast<MetricsSegment*>(*base);
  }
  uint64_t durable_epoch() { return control().epochs.durable.load(std::memory_order_acquire); }

 private:
  void make() {
    auto segments = SegmentSet::create(config_);
    CHECK(segments.has_value());
    segments_ = std::make_unique<SegmentSet>(*std::move(segments));
    SegmentIdentity identity;
    identity.cluster_uuid[0] = 1;
    identity.config_digest = config_digest(config_);
    space_ = std::make_unique<SegmentSpace>(segments_->all(), identity, SegmentSpace::kAnyAddress);
    coordinator_ = std::make_unique<Coordinator>(
        config_, 1, *space_,
        [this](uint32_t node, ControlOperation operation, const Json& body) {
          if (before_call) before_call(node, operation, body);
          if (fails_call && fails_call(operation)) {
            return Result<Json>(make_error(ExitCode::failed, "planted"));
          }
          auto answer = call(node, operation, body);
          if (after_call) after_call(node, operation, body);
          return answer;
        },
        LauncherCalls{[](bool) {}, [](const Error&) {}}, logger_);
    for (uint32_t node = 0; node < config_.nodes.size(); ++node) {
      nodes_.push_back(std::make_unique<Node>(
          config_, node, *space_, [](const Error&) {}, make_silent_logger("node")));
    }
  }
  void end() {
    coordinator_->drain();
    for (const auto& node : nodes_) node->drain();
    for (const auto& node : nodes_) node->stop();
    coordinator_->stop();
    coordinator_.reset();
    nodes_.clear();
    space_.reset();
    segments_.reset();
  }
  template <typename Target>
  static std::future<Result<Json>> ask(Target& target, ControlOperation operation,
                                       const Json& body) {
    const auto answered = std::make_shared<std::promise<Result<Json>>>();
    auto answer = answered->get_future();
    target.handle({operation, body},
                  [answered](Result<Json> result) { answered->set_value(std::move(result)); });
    return answer;
  }

  Config config_;
  Logger logger_;
  std::unique_ptr<SegmentSet> segments_;
  std::unique_ptr<SegmentSpace> space_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace atolldb::test
