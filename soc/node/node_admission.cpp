// Admission of client requests, by the state of the cluster.
#include "engine/hooks/mutants.h"
#include "shared/memory/state_names.h"
#include "soc/node/node.h"

namespace atolldb {

std::optional<Refusal> Node::refuse(Isolation isolation) const {
  // Acquire, here and below, pairs with the releases that changed the states.
  const bool runs = attached_.load(std::memory_order_acquire) && state() == NodeState::running;
  const auto cluster =
      runs ? static_cast<ClusterState>(view_.control->state.load(std::memory_order_acquire))
           : ClusterState::starting;
  // In a running cluster the savepoint lists this node's loggers (R28).
  if (cluster == ClusterState::running) return std::nullopt;
  if (runs && mutant(Mutant::requests_before_listed)) return std::nullopt;
  const std::string name = "node " + std::to_string(node_) + ": ";
  if (cluster != ClusterState::recovering) {
    return Refusal{Status::unavailable, name + "the cluster starts or stops: try again later"};
  }
  // A transaction that only reads a snapshot depends on nothing that recovery makes, and changes
  // nothing that recovery could miss (R19).
  const bool may_read = isolation == Isolation::snapshot_read_only && snapshots_ != nullptr &&
                        snapshots_->published().newest() != 0;
  if (may_read) return std::nullopt;
  return Refusal{Status::recovering, name + recovery_text(*view_.control)};
}

}  // namespace atolldb
