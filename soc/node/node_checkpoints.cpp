// The node's parts for the scheme `silor`: checkpoints, the replay, and their gauges.
#include <algorithm>
#include <memory>
#include <utility>

#include "shared/base/check.h"
#include "soc/node/node.h"
#include "soc/node/node_segments.h"

namespace atolldb {

/// REQUIRES: the workers have started.
void Node::start_checkpoints() {
  if (files_ == nullptr || config_.durability.scheme != DurabilityScheme::silor) return;
  CHECK(!workers_.empty() && snapshots_ == nullptr);
  CheckpointResources resources;
  resources.view = &view_;
  resources.pool = pool_.get();
  resources.metrics = [this](uint32_t slot) -> WorkerMetrics& { return metrics_->worker(slot); };
  resources.file_system = files_.get();
  resources.node = node_;
  // The slots that the installers have with the other scheme. The housekeeper has the one before.
  resources.first_slot = config_.nodes[node_].workers + 1;
  resources.slots = kMaxInstallers;
  resources.write_set = config_.memory.write_set;
  // The threads use the node's directories round robin, as its loggers do.
  resources.directory = [this](uint32_t thread) { return log_directory(config_, node_, thread); };
  resources.data_dir = config_.cluster.data_dir;
  resources.cpus = config_.nodes[node_].gleaner_cpus;
  resources.workers = static_cast<uint32_t>(workers_.size());
  resources.submit = [this](uint32_t worker, WorkerTask task) {
    return workers_[worker]->submit(std::move(task));
  };
  checkpoints_ = std::make_unique<CheckpointService>(std::move(resources), logger_);
}

Result<void> Node::serve_checkpoints(const ControlRequest& request, const ControlReply& reply) {
  // Acquire pairs with the release of `start`: the objects that serve these requests exist.
  const bool is_running =
      attached_.load(std::memory_order_acquire) && state() == NodeState::running;
  if (!is_running || checkpoints_ == nullptr) {
    return make_error(ExitCode::not_running, request.op + ": node " + std::to_string(node_) +
                                                 ": is not running, or takes no checkpoints: "
                                                 "durability.scheme is not \"silor\", or "
                                                 "durability.mode is \"off\"");
  }
  checkpoints_->handle(request, reply);
  return {};
}

}  // namespace atolldb
