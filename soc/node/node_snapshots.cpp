// What a node has for snapshots of the running cluster: a cache of their pages, and an installer
// (design: stratified snapshots).
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
  PageVisitorSettings visitor;
  visitor.view = &view_;
  visitor.pool = pool_.get();
  visitor.snapshots = &snapshots_->cache();
  visitor.node = node_;
  visitor.slot = config_.nodes[node_].workers + 1;  // the second auxiliary one
  static_assert(kAuxiliarySlots >= 2);
  visitor.metrics = &metrics_->worker(visitor.slot);
  visitor.write_set = config_.memory.write_set;
  visitor_ = std::make_unique<PageVisitor>(visitor);
  installer_ =
      std::make_unique<Installer>(view_, *visitor_, config_.gleaner.pool_high_water, logger_);
  installer_->start();
  return {};
}

}  // namespace atolldb
