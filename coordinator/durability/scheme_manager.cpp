#include "coordinator/durability/scheme_manager.h"

#include <utility>

#include "coordinator/checkpoints/checkpoint_manager.h"
#include "coordinator/snapshots/snapshot_manager.h"
#include "shared/base/check.h"

namespace atolldb {

bool is_cluster_running(const ControlSegment& control) {
  // Acquire pairs with the release of the coordinator, which changes the state.
  return control.state.load(std::memory_order_acquire) ==
         static_cast<uint32_t>(ClusterState::running);
}

Json describe_pin(const PinnedSnapshot& pin) {
  return {{"id", pin.id}, {"epoch", pin.epoch}, {"name", pin.name}};
}

Json describe_backup_pins(DurableState& durable) {
  Json pins = Json::array();
  for (const PinnedSnapshot& pin : durable.pinned()) {
    if (pin.is_of_backup()) pins.push_back(describe_pin(pin));
  }
  return pins;
}

std::unique_ptr<SchemeManager> make_scheme_manager(const SchemeContext& context, Logger logger) {
  CHECK(context.nodes.size() == context.config.nodes.size());
  switch (context.config.durability.scheme) {
    case DurabilityScheme::gleaned:
      return std::make_unique<SnapshotManager>(context, std::move(logger));
    case DurabilityScheme::silor:
      return std::make_unique<CheckpointManager>(context, std::move(logger));
  }
  CHECK(false);
}

}  // namespace atolldb
