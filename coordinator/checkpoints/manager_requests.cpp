// The requests checkpoint.take and snapshot.*, and the status of the checkpoints. The taker's
// thread makes the changes that a request asks for, between two checkpoints (R38).
#include <utility>

#include "coordinator/checkpoints/checkpoint_manager.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Returns whether the member of the request is the name of a backup's pin.
bool names_backup(const ControlRequest& request, const char* member) {
  const Json name = request.body.value(member, Json());
  return name.is_string() && name.get<std::string>().starts_with(kBackupPinPrefix);
}

}  // namespace

void CheckpointManager::handle(const ControlRequest& request, const ControlReply& reply) {
  const std::string refusal = refusal_of(request);
  if (!refusal.empty()) return reply(make_error(ExitCode::failed, request.op + ": " + refusal));
  switch (request.operation) {
    case ControlOperation::checkpoint_take:
      return request_checkpoint(reply);
    case ControlOperation::snapshot_damage:
      return list_damage(reply);
    default:
      taker_->between_runs([this, request, reply](bool runs) {
        if (!runs) {
          return reply(make_error(ExitCode::not_running, request.op + ": the cluster stops"));
        }
        reply(change(request));
      });
  }
}

/// A backup pins the checkpoint that it copies. No transaction reads a checkpoint, so a pin of a
/// user would only keep the log from growing shorter.
std::string CheckpointManager::refusal_of(const ControlRequest& request) const {
  if (durable_ == nullptr) {
    return "nothing is durable here: checkpoints need durability.mode \"durable\"";
  }
  const char* const kHasNone =
      "this cluster has durability.scheme \"silor\": it takes checkpoints, and no snapshots: run "
      "`atoll checkpoint`";
  switch (request.operation) {
    case ControlOperation::checkpoint_take:
    case ControlOperation::snapshot_damage:
      return "";
    case ControlOperation::snapshot_pin:
      return names_backup(request, "name") ? "" : kHasNone;
    case ControlOperation::snapshot_unpin:
      return names_backup(request, "pin") ? "" : kHasNone;
    default:
      return kHasNone;
  }
}

void CheckpointManager::request_checkpoint(const ControlReply& reply) {
  taker_->request([this, reply](const Result<uint32_t>& taken) {
    if (!taken) return reply(std::unexpected(taken.error()));
    // Relaxed: this is the taker's thread, the only writer.
    const CheckpointMetrics& newest = checkpoint_metrics_;
    reply(Json{{"id", *taken},
               {"replay_epoch", newest.replay_epoch.load(std::memory_order_relaxed)},
               {"end_epoch", newest.end_epoch.load(std::memory_order_relaxed)},
               {"bytes", newest.bytes.load(std::memory_order_relaxed)},
               {"records", newest.records.load(std::memory_order_relaxed)}});
  });
}

/// Answers with the damage that the scrubs of all nodes found.
void CheckpointManager::list_damage(const ControlReply& reply) {
  // Runs on another thread, so that a slow node does not block this one.
  const bool is_given = damage_thread_.give([this, reply] {
    std::vector<Json> answers(config_.nodes.size());
    const auto asked = on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
      ATOLL_ASSIGN(answers[node],
                   context_.call_node(node, ControlOperation::snapshot_damage, Json::object()));
      return {};
    });
    if (!asked) return reply(std::unexpected(asked.error()));
    reply(Json{{"nodes", answers}, {"unreadable", Json::array()}});
  });
  if (!is_given) {
    const std::string op(to_string(ControlOperation::snapshot_damage));
    reply(make_error(ExitCode::not_running, op + ": the cluster stops"));
  }
}

Result<Json> CheckpointManager::change(const ControlRequest& request) {
  CHECK(is_own_thread());
  Json described;
  if (request.operation == ControlOperation::snapshot_pin) {
    ATOLL_ASSIGN(const std::string name, get_text(request, "name"));
    ATOLL_ASSIGN(const PinnedSnapshot pinned, durable_->pin(0, name));
    logger_->info("checkpoint {}: pinned as {}", pinned.id, pinned.name);
    described = describe_pin(pinned);
    // Acquire pairs with the release in raise_durable. A backup must find the commits up to this
    // epoch in the logs.
    described["durable_epoch"] = control_.epochs.durable.load(std::memory_order_acquire);
  } else {
    CHECK(request.operation == ControlOperation::snapshot_unpin);
    ATOLL_ASSIGN(const std::string pin, get_text(request, "pin"));
    ATOLL_ASSIGN(const PinnedSnapshot unpinned, durable_->unpin(pin));
    logger_->info("checkpoint {}: pin {} removed", unpinned.id, unpinned.name);
    described = describe_pin(unpinned);
    delete_unneeded();
  }
  record_backup_pins();
  return described;
}

/// Copies the pins of backups for `add_status`, which must not wait for the savepoint's lock.
void CheckpointManager::record_backup_pins() {
  CHECK(is_own_thread());
  Json pins = describe_backup_pins(*durable_);
  const std::lock_guard guard(mutex_);
  backup_pins_ = std::move(pins);
}

void CheckpointManager::add_status(Json& status) const {
  CHECK(status.is_object());
  // Relaxed: for display.
  const auto get = [](const auto& word) { return word.load(std::memory_order_relaxed); };
  const CheckpointMetrics& metrics = checkpoint_metrics_;
  Json replay = recovery_.progress();
  replay["ms"] = std::chrono::duration_cast<std::chrono::milliseconds>(recovery_.time()).count();
  const std::lock_guard guard(mutex_);
  status["checkpoints"] = {{"newest", get(metrics.id)},
                           {"replay_epoch", get(metrics.replay_epoch)},
                           {"end_epoch", get(metrics.end_epoch)},
                           {"bytes", get(metrics.bytes)},
                           {"records", get(metrics.records)},
                           {"files", get(metrics.files)},
                           {"taken", metrics.taken.get()},
                           {"failed", metrics.failed.get()},
                           {"error", error_},
                           {"last_ms", get(metrics.duration_us) / 1000},
                           {"is_running", get(metrics.is_taking)},
                           {"progress", job_.progress()},
                           {"replay", std::move(replay)},
                           {"backup_pins", backup_pins_}};
}

}  // namespace atolldb
