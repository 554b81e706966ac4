#include "coordinator/durability/scheme_manager.h"

#include <utility>

#include "coordinator/checkpoints/checkpoint_manager.h"
#include "coordinator/snapshots/snapshot_manager.h"
#include "shared/base/check.h"

namespace atolldb {

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
