// The control requests that the coordinator serves.
#include <algorithm>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"
#include "coordinator/health.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/memory/page_header.h"
#include "shared/memory/state_names.h"
#include "shared/metrics/storage_metrics.h"
#include "shared/process/config_reload.h"

namespace atolldb {
namespace {

/// Adds the size of a storage in the newest snapshot, or its records in the newest checkpoint,
/// unless that lacks the storage. `spaces`: ascending by id. `has_pages`: they are of a snapshot.
void add_storage_space(Json& storage, const std::vector<StorageSpace>& spaces, bool has_pages) {
  const auto id = storage.at("id").get<uint32_t>();
  const auto space = std::ranges::lower_bound(spaces, id, {}, &StorageSpace::id);
  if (space == spaces.end() || space->id != id) return;
  Json stored = Json::object();
  if (has_pages) stored["bytes"] = space->pages * kPageBytes;
  if (space->records) {
    stored["records"] = *space->records;
    stored["records_is_estimate"] = space->is_estimate;
  }
  storage[has_pages ? "snapshot" : "checkpoint"] = std::move(stored);
}

}  // namespace

void Coordinator::handle(const ControlRequest& request, const ControlReply& reply) {
  CHECK(scheme_ != nullptr);
  const auto runs = [&] {
    const auto checked = check_runs(request.op);
    if (!checked) reply(std::unexpected(checked.error()));
    return checked.has_value();
  };
  switch (request.operation) {
    case ControlOperation::status:
      return reply(status(StatusReader::control,
                          get_number_or(request, "slowest_since", 0).value_or(0),
                          request.body.value("buckets", Json(false)) == true));
    case ControlOperation::storage_list:
      return reply(Json{{"storages", list_storages()}});
    case ControlOperation::storage_describe:
      return reply(describe_one_storage(request));
    case ControlOperation::down:
      return stop_cluster(request, reply);
    case ControlOperation::config_reload:
      return reply(reload_config(request));
    case ControlOperation::storage_create:
    case ControlOperation::storage_drop:
      if (runs()) catalog_->change(request, reply);
      return;
    case ControlOperation::snapshot_take:
    case ControlOperation::snapshot_pin:
    case ControlOperation::snapshot_unpin:
    case ControlOperation::snapshot_remove:
    case ControlOperation::snapshot_damage:
    case ControlOperation::checkpoint_take:
      if (runs()) scheme_->handle(request, reply);
      return;
    default:
      return reply(unknown_op(request));
  }
}

void Coordinator::stop_cluster(const ControlRequest& request, const ControlReply& reply) {
  const bool now = request.body.value("now", Json(false)) == true;
  logger_->info("a client requests the stop of the cluster{}", now ? " now" : "");
  reply(Json{{"state", "draining"}});
  launcher_.request_stop(now);
}

/// Applies new values to this process, and lets the launcher do so.
Result<Json> Coordinator::reload_config(const ControlRequest& request) {
  const std::lock_guard guard(reload_mutex_);
  const Json values = request.body.value("values", Json::object());
  ATOLL_ASSIGN(const Config wanted, reload_values(config_, values, logger_));
  if (archiver_ != nullptr) archiver_->set_times(wanted.archive.retry, wanted.archive.timeout);
  if (launcher_.report_reload) launcher_.report_reload(values.dump());
  return Json::object();
}

Result<void> Coordinator::check_runs(const std::string& op) const {
  const ClusterState state = this->state();
  if (state == ClusterState::running) return {};
  if (state == ClusterState::recovering) {
    const bool has_snapshots = config_.durability.scheme == DurabilityScheme::gleaned;
    return make_error(ExitCode::recovering, op + ": " + recovery_text(*control_, has_snapshots));
  }
  return make_error(ExitCode::not_running,
                    op + ": the cluster does not run: try again when it does");
}

Json Coordinator::status_for_page() {
  CHECK(scheme_ != nullptr);
  Json status = this->status(StatusReader::status_page, 0, false);
  Json problems = Json::array();
  // The progress is part of the status of a recovering cluster.
  for (const Problem& problem : find_problems(status, "")) {
    problems.push_back({{"what", problem.what}, {"what_to_do", problem.what_to_do}});
  }
  status["healthy"] = problems.empty();
  status["problems"] = std::move(problems);
  return status;
}

Json Coordinator::status(StatusReader reader, uint64_t slowest_since, bool has_buckets) {
  Json status = status_->write(list_storages(), reader);
  scheme_->add_status(status);
  status["recovery"] = state() == ClusterState::recovering ? scheme_->recovery_status() : Json();
  status["device_hangs"] = device_status();
  if (durable_epoch_ != nullptr) {
    status["acknowledgement"] =
        status_->acknowledgement(durable_epoch_->times(), slowest_since, has_buckets);
  }
  if (archiver_ != nullptr) status["archive"] = archiver_->status();
  return status;
}

Json Coordinator::list_storages() const {
  Json storages = catalog_->list();
  for (Json& storage : storages) status_->add_counts(storage);
  add_spaces(storages);
  return storages;
}

void Coordinator::add_spaces(Json& storages) const {
  const StorageSpaces* const newest = storages_of_newest(snapshot_metrics(), checkpoint_metrics());
  if (newest == nullptr) return;
  const std::vector<StorageSpace> spaces = newest->get();
  for (Json& storage : storages) add_storage_space(storage, spaces, newest->has_pages());
}

Result<Json> Coordinator::describe_one_storage(const ControlRequest& request) const {
  ATOLL_ASSIGN(Json storage, catalog_->describe(request));
  status_->add_counts(storage);
  Json storages = Json::array({std::move(storage)});
  add_spaces(storages);
  return storages.front();
}

/// Returns a text for each process that has a hanging device now.
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
