// Pins of snapshots and the removal of single snapshots (R38). The taker's thread makes all changes
// of the savepoint, between runs of the gleaner.
#include <limits>

#include "coordinator/coordinator.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

bool is_change(const std::string& op) {
  return op == "snapshot.pin" || op == "snapshot.unpin" || op == "snapshot.remove";
}

Result<uint32_t> id_of(const ControlRequest& request) {
  const Result<uint64_t> id = get_number_or(request, "id", 0);
  if (!id) return std::unexpected(id.error());
  if (*id > std::numeric_limits<uint32_t>::max()) {
    return make_error(ExitCode::usage, request.op + ": id " + std::to_string(*id) +
                                           ": no snapshot has an id of more than 32 bits");
  }
  return static_cast<uint32_t>(*id);
}

Json to_json(const PinnedSnapshot& pin) {
  return {{"id", pin.id}, {"epoch", pin.epoch}, {"name", pin.name}};
}

}  // namespace

void Coordinator::request_change(const ControlRequest& request, const ControlReply& reply) {
  if (request.op == "snapshot.damage") return list_damage(request, reply);
  if (!is_change(request.op)) return reply(unknown_op(request));
  if (const auto runs = check_runs(request.op); !runs) {
    return reply(std::unexpected(runs.error()));
  }
  if (taker_ == nullptr) {
    return reply(make_error(ExitCode::failed, request.op +
                                                  ": nothing is durable here: snapshots need "
                                                  "durability.mode \"durable\""));
  }
  taker_->between_runs([this, request, reply](bool runs) {
    if (!runs) return reply(make_error(ExitCode::not_running, request.op + ": the cluster stops"));
    reply(change_snapshots(request));
  });
}

/// Returns the damage that the scrubs of all nodes found, and the ranges that the latest complete
/// run could not read.
void Coordinator::list_damage(const ControlRequest& request, const ControlReply& reply) {
  if (const auto runs = check_runs(request.op); !runs) {
    return reply(std::unexpected(runs.error()));
  }
  if (taker_ == nullptr) {
    return reply(make_error(ExitCode::failed, request.op +
                                                  ": nothing is durable here: a scrub needs "
                                                  "durability.mode \"durable\""));
  }
  // Not on the calling thread, because nodes may wait for that one.
  damage_thread_.give([this, reply] {
    std::vector<Json> answers(nodes_.size());
    const auto asked = on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
      ATOLL_ASSIGN(auto answer, call_node_(node, "snapshot.damage", Json::object()));
      answers[node] = std::move(answer);
      return {};
    });
    if (!asked) return reply(std::unexpected(asked.error()));
    reply(Json{{"nodes", answers},
               {"unreadable", gleaner_->status().value("unreadable", Json::array())}});
  });
}

Result<Json> Coordinator::change_snapshots(const ControlRequest& request) {
  if (request.op == "snapshot.unpin") {
    const Result<std::string> pin = get_text(request, "pin");
    if (!pin) return std::unexpected(pin.error());
    ATOLL_ASSIGN(const auto unpinned, durable_->unpin(*pin));
    logger_->info("snapshot {}: pin {} removed", unpinned.id, unpinned.name);
    if (const auto forgotten = forget_unneeded(); !forgotten) {
      logger_->warn("files that nothing needs stay for now: {}", forgotten.error().message);
    }
    return to_json(unpinned);
  }
  const Result<uint32_t> id = id_of(request);
  if (!id) return std::unexpected(id.error());
  if (request.op == "snapshot.remove") {
    const auto removed = durable_->remove(*id, ids_in_use());
    if (!removed) return std::unexpected(removed.error());
    logger_->info("snapshot {}: removed, {} files", *id, *removed);
    return Json{{"id", *id}, {"files", *removed}};
  }
  std::string name;
  if (request.body.contains("name")) {
    ATOLL_ASSIGN(const std::string given, get_text(request, "name"));
    name = given;
  }
  const auto pinned = durable_->pin(*id, name);
  if (!pinned) return std::unexpected(pinned.error());
  logger_->info("snapshot {}: pinned as {}", pinned->id, pinned->name);
  return to_json(*pinned);
}

std::set<uint32_t> Coordinator::ids_in_use() const {
  std::set<uint32_t> ids;
  for (const SnapshotMetadata& kept : kept_.all()) ids.insert(kept.id);
  if (durable_->snapshot()) ids.insert(durable_->snapshot()->id);
  for (const auto& [id, offer] : offered_) ids.insert(id);
  return ids;
}

}  // namespace atolldb
