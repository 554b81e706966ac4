#include "shared/message/control_operation.h"

#include <iterator>

#include "shared/base/check.h"

namespace atolldb {
namespace {

constexpr ControlServers kCluster = ControlServers::coordinator;
constexpr ControlServers kNodes = ControlServers::nodes;

constexpr ControlLimits kSmall = {kMaxSmallRequestBytes, kMaxSmallRequestValues};
/// Requests with the input of a procedure or job.
constexpr ControlLimits kCall = {kMaxCallBytes, kMaxSmallRequestValues};
/// Requests of the coordinator to nodes, about the gleaner, and about roots and files of storages.
constexpr ControlLimits kLarge = {kMaxControlBytes, kMaxControlValues};

using enum ControlOperation;
constexpr ControlOperationEntry kOperations[] = {
    {status, "status", kCluster, kSmall},
    {down, "down", kCluster, kSmall},
    {storage_create, "storage.create", kCluster, kSmall},
    {storage_drop, "storage.drop", kCluster, kSmall},
    {storage_list, "storage.list", kCluster, kSmall},
    {storage_describe, "storage.describe", kCluster, kSmall},
    {snapshot_take, "snapshot.take", kCluster, kSmall},
    {snapshot_pin, "snapshot.pin", kCluster, kSmall},
    {snapshot_unpin, "snapshot.unpin", kCluster, kSmall},
    {snapshot_remove, "snapshot.remove", kCluster, kSmall},
    {snapshot_damage, "snapshot.damage", ControlServers::both, kSmall},
    {describe, "describe", kNodes, kSmall},
    {procedure_list, "procedure.list", kNodes, kSmall},
    {procedure_call, "procedure.call", kNodes, kCall, true},
    {job_start, "job.start", kNodes, kCall, true},
    {job_wait, "job.wait", kNodes, kSmall},
    {job_stop, "job.stop", kNodes, kSmall},
    {log_begin, "log.begin", kNodes, kSmall},
    {pages_release, "pages.release", kNodes, kSmall},
    {glean_prepare, "glean.prepare", kNodes, kLarge, true},
    {glean_map, "glean.map", kNodes, kLarge},
    {glean_wait, "glean.wait", kNodes, kLarge},
    {glean_end, "glean.end", kNodes, kLarge},
    {snapshot_align, "snapshot.align", kNodes, kLarge},
    {snapshot_install, "snapshot.install", kNodes, kLarge},
    {snapshot_open, "snapshot.open", kNodes, kLarge},
    {snapshot_publish, "snapshot.publish", kNodes, kLarge},
    {snapshot_withdraw, "snapshot.withdraw", kNodes, kLarge},
};
constexpr ControlOperationEntry kUnknown = {unknown, "", ControlServers::none, kSmall};

consteval bool are_indexed_by_operation() {
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    if (kOperations[i].operation != static_cast<ControlOperation>(i)) return false;
  }
  return true;
}
static_assert(are_indexed_by_operation());
static_assert(std::size(kOperations) == static_cast<size_t>(unknown));

}  // namespace

std::span<const ControlOperationEntry> control_operations() { return kOperations; }

const ControlOperationEntry& entry_of(ControlOperation operation) {
  CHECK(operation <= unknown);
  return operation == unknown ? kUnknown : kOperations[static_cast<size_t>(operation)];
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
  return unknown;
}

}  // namespace atolldb
