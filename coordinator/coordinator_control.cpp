// The control requests that the coordinator serves.
#include <utility>

#include "coordinator/coordinator.h"
#include "shared/base/check.h"
#include "shared/memory/state_names.h"

namespace atolldb {

void Coordinator::handle(const ControlRequest& request, ControlReply reply) {
  CHECK(snapshots_ != nullptr);
  const std::string& op = request.op;
  if (op == "status") return reply(status());
  if (op == "storage.list") return reply(Json{{"storages", catalog_->list()}});
  if (op == "storage.describe") return catalog_->describe(request, reply);
  if (op == "down") {
    const bool now = request.body.value("now", Json(false)) == true;
    logger_->info("a client requests the stop of the cluster{}", now ? " now" : "");
    reply(Json{{"state", "draining"}});
    return launcher_.request_stop(now);
  }
  const bool is_ddl = CatalogManager::is_change(op);
  if (!is_ddl && !SnapshotManager::serves(op)) return reply(unknown_op(request));
  if (const auto runs = check_runs(op); !runs) return reply(std::unexpected(runs.error()));
  if (is_ddl) return catalog_->change(request, std::move(reply));
  snapshots_->handle(request, reply);
}

Result<void> Coordinator::check_runs(const std::string& op) const {
  const ClusterState state = this->state();
  if (state == ClusterState::running) return {};
  if (state == ClusterState::recovering) {
    return make_error(ExitCode::recovering, op + ": " + recovery_text(*control_));
  }
  return make_error(ExitCode::not_running,
                    op + ": the cluster does not run: try again when it does");
}

Json Coordinator::status() {
  Json status = status_->write(catalog_->list());
  status["snapshots"] = snapshots_->status();
  status["recovery"] = state() == ClusterState::recovering ? snapshots_->recovery_status() : Json();
  status["device_hangs"] = device_status();
  return status;
}

/// Returns one text for each process whose device hangs now.
Json Coordinator::device_status() const {
  Json hangs = Json::array();
  const auto add = [&](const std::string& role, const DeviceMetrics& device) {
    const std::string text = device_hang_text(device, config_.durability.device_hang_limit);
    if (!text.empty()) hangs.push_back({{"process", role}, {"text", text}});
  };
  add("coordinator", device_metrics_);
  for (size_t node = 0; node < metrics_.size(); ++node) {
    add("node" + std::to_string(node), metrics_[node]->device);
  }
  return hangs;
}

}  // namespace atolldb
