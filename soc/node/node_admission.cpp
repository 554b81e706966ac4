// Which requests of clients a node runs, by the state of its cluster.
#include "engine/mutants.h"
#include "shared/memory/recovery_text.h"
#include "soc/node/node.h"

namespace atolldb {

std::optional<Refusal> Node::refuse(Isolation isolation) const {
  // Acquire, here and below, pairs with the releases that changed the states.
  const bool runs = attached_.load(std::memory_order_acquire) && state() == NodeState::running;
  const auto cluster =
      runs ? static_cast<ClusterState>(view_.control->state.load(std::memory_order_acquire))
           : ClusterState::starting;
  // Where the cluster runs, the savepoint lists our logs (R28).
  if (cluster == ClusterState::running) return std::nullopt;
  if (runs && mutant(Mutant::requests_before_listed)) return std::nullopt;
  const std::string name = "node " + std::to_string(node_) + ": ";
  if (cluster != ClusterState::recovering) {
    return Refusal{Status::unavailable, name + "the cluster starts or stops: try again later"};
  }
  // What only reads a snapshot depends on nothing that recovery makes, and leaves nothing that it
  // could miss (R19).
  const bool may_read = isolation == Isolation::snapshot_read_only && snapshots_ != nullptr &&
                        snapshots_->published().newest() != 0;
  if (may_read) return std::nullopt;
  return Refusal{Status::recovering, name + recovery_text(*view_.control)};
}

}  // namespace atolldb
