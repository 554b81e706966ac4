// The node's cache of snapshot pages (design: stratified snapshots).
#include <algorithm>

#include "soc/node/node.h"
#include "soc/node/placement.h"

namespace atolldb {

Result<void> Node::start_snapshots() {
  if (files_ == nullptr) return {};
  NodeSnapshotsSettings settings;
  settings.file_system = files_.get();
  std::ranges::copy(view_.control->data_uuid, settings.cluster_uuid.begin());
  settings.cache_bytes = config_.memory.snapshot_cache;
  settings.reader_count = view_.shared[node_]->slot_count;
  settings.numa_node = numa_node_of(config_, node_, machine_);
  Result<std::unique_ptr<NodeSnapshots>> snapshots = NodeSnapshots::create(settings, logger_);
  if (!snapshots) return std::unexpected(snapshots.error());
  snapshots_ = *std::move(snapshots);
  return {};
}

}  // namespace atolldb
