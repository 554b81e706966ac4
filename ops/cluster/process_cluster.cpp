#include "ops/cluster/process_cluster.h"

#include <chrono>
#include <future>
#include <utility>

#include "shared/process/run_paths.h"

namespace atolldb {

ProcessCluster::ProcessCluster(const Config& config)
    : Cluster(config), coordinator_(config.control.endpoint) {
  for (uint32_t node = 0; node < config.nodes.size(); ++node) {
    nodes_.push_back(std::make_unique<ControlClient>(node_endpoint(config, node)));
  }
}

Result<std::unique_ptr<Cluster>> ProcessCluster::launch(const Config& config,
                                                        const std::string& binary_dir) {
  std::unique_ptr<ProcessCluster> cluster(new ProcessCluster(config));
  std::promise<Result<Launcher*>> started;
  // One thread starts and supervises the processes. The kernel kills the children when that thread
  // ends.
  cluster->supervisor_ = std::thread([self = cluster.get(), &started, binary_dir] {
    LaunchOptions options;
    options.binary_dir = binary_dir;
    auto launcher = std::make_unique<Launcher>(self->config_, std::move(options),
                                               make_silent_logger("launcher"));
    if (const auto running = launcher->start(); !running) {
      started.set_value(std::unexpected(running.error()));
      return;
    }
    started.set_value(launcher.get());
    Result<void> ended = launcher->supervise();
    const std::lock_guard guard(self->mutex_);
    self->ended_ = std::move(ended);
    self->launcher_ = nullptr;
    self->has_changed_.notify_all();
  });
  const Result<Launcher*> running = started.get_future().get();
  if (!running) {
    cluster->supervisor_.join();
    return std::unexpected(running.error());
  }
  const std::lock_guard guard(cluster->mutex_);
  if (!cluster->ended_) cluster->launcher_ = *running;
  return cluster;
}

ProcessCluster::~ProcessCluster() { [[maybe_unused]] const auto ended = shutdown(); }

bool ProcessCluster::has_ended() const {
  const std::lock_guard guard(mutex_);
  return ended_.has_value();
}

Result<Json> ProcessCluster::with_reason(Result<Json> answer) const {
  constexpr std::chrono::milliseconds kPatience{500};
  if (answer) return answer;
  std::unique_lock lock(mutex_);
  if (answer.error().code == ExitCode::coordinator_unreachable) {
    has_changed_.wait_for(lock, kPatience, [this] { return ended_.has_value(); });
  }
  if (!ended_) return answer;
  if (!*ended_) return std::unexpected(ended_->error());
  return make_error(ExitCode::not_running,
                    "cluster \"" + config_.cluster.name + "\": has been stopped: launch it again");
}

Result<Json> ProcessCluster::call(uint32_t node, ControlOperation operation, const Json& body,
                                  std::chrono::milliseconds timeout) {
  if (node >= nodes_.size()) return no_such_node(node);
  return with_reason(nodes_[node]->call(operation, body, timeout, [this] { return has_ended(); }));
}

Result<Json> ProcessCluster::coordinator(ControlOperation operation, const Json& body,
                                         std::chrono::milliseconds timeout) {
  return with_reason(coordinator_.call(operation, body, timeout, [this] { return has_ended(); }));
}

Result<std::unique_ptr<SessionClient>> ProcessCluster::connect_session(uint32_t node) {
  if (node >= nodes_.size()) return no_such_node(node);
  return SessionClient::connect(config_.cluster.run_dir, node);
}

Result<void> ProcessCluster::shutdown() {
  {
    const std::lock_guard guard(mutex_);
    if (launcher_ != nullptr) launcher_->request_stop(false);
  }
  if (supervisor_.joinable()) supervisor_.join();
  const std::lock_guard guard(mutex_);
  return ended_.value_or(Result<void>{});
}

}  // namespace atolldb
