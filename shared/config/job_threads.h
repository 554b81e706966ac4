// Threads of snapshot jobs: how many mappers and reducers each node has while the cluster runs, and
// in a recovery, when no worker runs. Automatic numbers depend on the processors of the machine.
#pragma once

#include <cstdint>

#include "shared/config/config.h"
#include "shared/config/machine.h"

namespace atolldb {

/// Mappers and reducers of one node.
struct JobThreads {
  uint32_t mappers = 1;
  uint32_t reducers = 1;

  bool operator==(const JobThreads&) const = default;
};

/// Largest automatic number of mappers, and of reducers, of one node.
inline constexpr uint32_t kMaxAutomaticThreads = 16;

/// The inboxes of all automatic reducers take at most 1/kInboxShareOfMemory of the machine's
/// memory, unless one reducer for each node takes more.
inline constexpr uint64_t kInboxShareOfMemory = 16;

/// Returns the threads of a snapshot that is taken while transactions run.
JobThreads running_threads(const NodeConfig& node);
/// Returns the threads of a recovery: at least as many as in a running cluster.
JobThreads recovery_threads(const NodeConfig& node);
/// Returns the number of inboxes of the node: one for each reducer that it ever has.
uint32_t inbox_count(const NodeConfig& node);

/// Replaces each 0 in `mappers`, `reducers` and `recovery_threads` of the nodes by an automatic
/// number. resolve_defaults calls this function, so all processes of a cluster have the numbers
/// that its launcher has chosen.
///
/// A node uses the processors of its `gleaner_cpus`, or an equal share of all processors. In a
/// recovery it has one mapper and one reducer for each of them. In a running cluster it has one
/// mapper and one reducer for every two of them without a worker. Each number is at least 1, and
/// limited by the two constants above.
void resolve_job_threads(Config& config, const Machine& machine);

}  // namespace atolldb
