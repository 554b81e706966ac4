#include "shared/message/control_operation.h"

#include <iterator>

#include "shared/base/check.h"

namespace atolldb {
namespace {

constexpr ControlServers kCluster = ControlServers::coordinator;
constexpr ControlServers kNodes = ControlServers::nodes;

constexpr ControlLimits kSmall = {kMaxSmallRequestBytes, kMaxSmallRequestValues};
/// Limits of requests with the input of a job.
constexpr ControlLimits kCall = {kMaxCallBytes, kMaxSmallRequestValues};
/// Limits of the coordinator's requests to nodes about snapshots and checkpoints.
constexpr ControlLimits kLarge = {kMaxControlBytes, kMaxControlValues};

using Op = ControlOperation;
constexpr ControlOperationEntry kOperations[] = {
    {Op::status, "status", kCluster, kSmall},
    {Op::down, "down", kCluster, kSmall},
    {Op::config_reload, "config.reload", ControlServers::both, kSmall},
    {Op::storage_create, "storage.create", kCluster, kSmall},
    {Op::storage_drop, "storage.drop", kCluster, kSmall},
    {Op::storage_list, "storage.list", kCluster, kSmall},
    {Op::storage_describe, "storage.describe", kCluster, kSmall},
    {Op::snapshot_take, "snapshot.take", kCluster, kSmall},
    {Op::snapshot_pin, "snapshot.pin", kCluster, kSmall},
    {Op::snapshot_unpin, "snapshot.unpin", kCluster, kSmall},
    {Op::snapshot_remove, "snapshot.remove", kCluster, kSmall},
    {Op::snapshot_damage, "snapshot.damage", ControlServers::both, kSmall},
    {Op::checkpoint_take, "checkpoint.take", kCluster, kSmall},
    {Op::describe, "describe", kNodes, kSmall},
    {Op::procedure_list, "procedure.list", kNodes, kSmall},
    {Op::job_start, "job.start", kNodes, kCall, true},
    {Op::job_wait, "job.wait", kNodes, kSmall},
    {Op::job_stop, "job.stop", kNodes, kSmall},
    {Op::session_list, "session.list", kNodes, kSmall},
    {Op::session_kill, "session.kill", kNodes, kSmall},
    {Op::library_prepare, "library.prepare", kNodes, kSmall},
    {Op::library_publish, "library.publish", kNodes, kSmall},
    {Op::library_discard, "library.discard", kNodes, kSmall},
    {Op::log_begin, "log.begin", kNodes, kSmall},
    {Op::pages_release, "pages.release", kNodes, kSmall},
    {Op::glean_prepare, "glean.prepare", kNodes, kLarge, true},
    {Op::glean_capture, "glean.capture", kNodes, kLarge},
    {Op::glean_map, "glean.map", kNodes, kLarge, true},
    {Op::glean_wait, "glean.wait", kNodes, kLarge},
    {Op::glean_end, "glean.end", kNodes, kLarge},
    {Op::snapshot_align, "snapshot.align", kNodes, kLarge},
    {Op::snapshot_install, "snapshot.install", kNodes, kLarge},
    {Op::snapshot_open, "snapshot.open", kNodes, kLarge},
    {Op::snapshot_publish, "snapshot.publish", kNodes, kLarge},
    {Op::snapshot_withdraw, "snapshot.withdraw", kNodes, kLarge},
    {Op::snapshot_reads, "snapshot.reads", kNodes, kLarge},
    {Op::checkpoint_divide, "checkpoint.divide", kNodes, kLarge},
    {Op::checkpoint_begin, "checkpoint.begin", kNodes, kLarge, true},
    {Op::checkpoint_wait, "checkpoint.wait", kNodes, kSmall},
    {Op::checkpoint_end, "checkpoint.end", kNodes, kSmall},
    {Op::replay_begin, "replay.begin", kNodes, kLarge, true},
    {Op::replay_wait, "replay.wait", kNodes, kSmall},
    {Op::replay_exchange, "replay.exchange", kNodes, kLarge, true},
    {Op::replay_clean, "replay.clean", kNodes, kLarge},
    {Op::replay_end, "replay.end", kNodes, kSmall},
};
constexpr ControlOperationEntry kUnknown = {Op::unknown, "", ControlServers::none, kSmall};

consteval bool are_indexed_by_operation() {
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    if (kOperations[i].operation != static_cast<ControlOperation>(i)) return false;
  }
  return true;
}
static_assert(are_indexed_by_operation());
static_assert(std::size(kOperations) == static_cast<size_t>(Op::unknown));

}  // namespace

std::span<const ControlOperationEntry> control_operations() { return kOperations; }

const ControlOperationEntry& entry_of(ControlOperation operation) {
  CHECK(operation <= Op::unknown);
  return operation == Op::unknown ? kUnknown : kOperations[static_cast<size_t>(operation)];
}

bool is_served_by(ControlServers servers, ControlOperation operation) {
  CHECK(servers != ControlServers::none);
  const auto wanted = static_cast<uint8_t>(servers);
  return (static_cast<uint8_t>(entry_of(operation).servers) & wanted) == wanted;
}

ControlOperation control_operation(std::string_view name) {
  for (const ControlOperationEntry& entry : kOperations) {
    if (entry.name == name) return entry.operation;
  }
  return Op::unknown;
}

}  // namespace atolldb
