// The requests snapshot.*, and the status of the snapshots. The taker's thread makes the changes
// that a request asks for, between two snapshots (R38).
#include <limits>
#include <utility>

#include "coordinator/snapshots/snapshot_manager.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

Result<uint32_t> id_of(const ControlRequest& request) {
  ATOLL_ASSIGN(const uint64_t id, get_number_or(request, "id", 0));
  if (id > std::numeric_limits<uint32_t>::max()) {
    return make_error(ExitCode::usage, request.op + ": id " + std::to_string(id) +
                                           ": no snapshot has an id of more than 32 bits");
  }
  return static_cast<uint32_t>(id);
}

}  // namespace

void SnapshotManager::handle(const ControlRequest& request, const ControlReply& reply) {
  const bool asks_damage = request.operation == ControlOperation::snapshot_damage;
  if (durable_ == nullptr) {
    return reply(
        make_error(ExitCode::failed, request.op + ": nothing is durable here: " +
                                         (asks_damage ? "a scrub needs" : "snapshots need") +
                                         " durability.mode \"durable\""));
  }
  if (request.operation == ControlOperation::checkpoint_take) {
    return reply(make_error(ExitCode::failed,
                            request.op + ": this cluster has durability.scheme \"gleaned\": it "
                                         "takes snapshots, and no checkpoints: run `atoll snapshot "
                                         "take`"));
  }
  if (asks_damage) return list_damage(reply);
  if (request.operation == ControlOperation::snapshot_take) return request_snapshot(reply);
  taker_->between_runs([this, request, reply](bool runs) {
    if (!runs) return reply(make_error(ExitCode::not_running, request.op + ": the cluster stops"));
    reply(change(request));
  });
}

void SnapshotManager::request_snapshot(const ControlReply& reply) {
  taker_->request([this, reply](const Result<uint32_t>& taken) {
    if (!taken) return reply(std::unexpected(taken.error()));
    reply(Json{{"id", *taken}, {"epoch", newest_epoch_.load(std::memory_order_relaxed)}});
  });
}

/// Answers with the damage that the scrubs of all nodes found, and the ranges that the latest
/// complete job could not read.
void SnapshotManager::list_damage(const ControlReply& reply) {
  // Runs on another thread, so that a slow node does not block this one.
  const bool is_given = damage_thread_.give([this, reply] {
    std::vector<Json> answers(nodes_.size());
    const auto asked = on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
      ATOLL_ASSIGN(answers[node],
                   call_node_(node, ControlOperation::snapshot_damage, Json::object()));
      return {};
    });
    if (!asked) return reply(std::unexpected(asked.error()));
    reply(Json{{"nodes", answers}, {"unreadable", job_->unreadable()}});
  });
  if (!is_given) {
    const std::string op(to_string(ControlOperation::snapshot_damage));
    reply(make_error(ExitCode::not_running, op + ": the cluster stops"));
  }
}

Result<Json> SnapshotManager::change(const ControlRequest& request) {
  CHECK(is_own_thread());
  switch (request.operation) {
    case ControlOperation::snapshot_pin:
      return pin(request);
    case ControlOperation::snapshot_unpin:
      return unpin(request);
    case ControlOperation::snapshot_remove:
      return remove(request);
    default:
      return unknown_op(request);
  }
}

Result<Json> SnapshotManager::pin(const ControlRequest& request) {
  ATOLL_ASSIGN(const uint32_t id, id_of(request));
  std::string name;
  if (request.body.contains("name")) {
    ATOLL_ASSIGN(name, get_text(request, "name"));
  }
  ATOLL_ASSIGN(const PinnedSnapshot pinned, durable_->pin(id, name));
  logger_->info("snapshot {}: pinned as {}", pinned.id, pinned.name);
  record_backup_pins();
  Json described = describe_pin(pinned);
  // Acquire pairs with the release in raise_durable. A backup must find the commits up to this
  // epoch in the logs.
  described["durable_epoch"] = control_.epochs.durable.load(std::memory_order_acquire);
  return described;
}

Result<Json> SnapshotManager::unpin(const ControlRequest& request) {
  ATOLL_ASSIGN(const std::string pin, get_text(request, "pin"));
  ATOLL_ASSIGN(const PinnedSnapshot unpinned, durable_->unpin(pin));
  logger_->info("snapshot {}: pin {} removed", unpinned.id, unpinned.name);
  record_backup_pins();
  [[maybe_unused]] const Result<void> published = publish_and_delete();  // logs its error
  return describe_pin(unpinned);
}

Result<Json> SnapshotManager::remove(const ControlRequest& request) {
  ATOLL_ASSIGN(const uint32_t id, id_of(request));
  ATOLL_ASSIGN(const size_t removed, durable_->remove(id, ids_in_use()));
  logger_->info("snapshot {}: removed, {} files", id, removed);
  return Json{{"id", id}, {"files", removed}};
}

Json SnapshotManager::unreadable_pins() const {
  Json list = Json::array();
  const std::lock_guard guard(mutex_);
  for (const auto& [id, reason] : unreadable_pins_) {
    list.push_back({{"id", id}, {"reason", reason}});
  }
  return list;
}

/// Copies the pins of backups for `status`, which must not wait for the savepoint's lock.
void SnapshotManager::record_backup_pins() {
  CHECK(is_own_thread());
  Json pins = describe_backup_pins(*durable_);
  const std::lock_guard guard(mutex_);
  backup_pins_ = std::move(pins);
}

Json SnapshotManager::backup_pins() const {
  const std::lock_guard guard(mutex_);
  return backup_pins_;
}

Json SnapshotManager::install_status() const {
  const std::lock_guard guard(mutex_);
  return install_status_;
}

void SnapshotManager::add_status(Json& status) const {
  CHECK(status.is_object());
  // Relaxed: for display.
  status["snapshots"] = {{"newest", newest_.load(std::memory_order_relaxed)},
                         {"epoch", newest_epoch_.load(std::memory_order_relaxed)},
                         {"overlapped", overlapped_.load(std::memory_order_relaxed)},
                         {"install", install_status()},
                         {"unreadable_pins", unreadable_pins()},
                         {"backup_pins", backup_pins()},
                         {"fallback", durable_ != nullptr ? durable_->fallback() : std::string()},
                         {"space", rewrites_.status()},
                         {"run", job_ != nullptr ? job_->status() : Json::object()}};
}

}  // namespace atolldb
