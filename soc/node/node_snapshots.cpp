// The node's snapshots: the cache of their pages, the installer, the scrubber, and the snapshots
// that transactions may begin with (R18).
#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "shared/base/try.h"
#include "soc/node/node.h"
#include "soc/node/placement.h"

namespace atolldb {

Result<void> Node::start_snapshots() {
  if (files_ == nullptr) return {};
  NodeSnapshotsSettings settings;
  settings.file_system = files_.get();
  settings.shared = view_.shared[node_];
  settings.newest = &view_.control->readable_snapshot;
  std::ranges::copy(view_.control->data_uuid, settings.cluster_uuid.begin());
  settings.cache_bytes = config_.memory.snapshot_cache;
  settings.reader_count = view_.shared[node_]->slot_count;
  settings.transparent_huge = config_.memory.huge_pages != HugePages::off;
  settings.numa_node = numa_node_of(config_, node_, machine_);
  ATOLL_ASSIGN(std::unique_ptr<NodeSnapshots> snapshots, NodeSnapshots::create(settings, logger_));
  snapshots_ = std::move(snapshots);
  PageVisitorSettings visitor;
  visitor.view = &view_;
  visitor.pool = pool_.get();
  visitor.snapshots = &snapshots_->cache();
  visitor.node = node_;
  visitor.slot = config_.nodes[node_].workers + 1;  // the second auxiliary slot
  static_assert(kAuxiliarySlots >= 2);
  visitor.metrics = &metrics_->worker(visitor.slot);
  visitor.write_set = config_.memory.write_set;
  visitor_ = std::make_unique<PageVisitor>(visitor);
  installer_ = std::make_unique<Installer>(view_, *visitor_, logger_);
  installer_->start();
  start_scrub(settings.cluster_uuid);
  return {};
}

void Node::start_scrub(const ClusterUuid& cluster_uuid) {
  ScrubberSettings settings;
  settings.file_system = files_.get();
  settings.cluster_uuid = cluster_uuid;
  settings.node = node_;
  settings.bytes_per_s = config_.snapshot.scrub_rate;
  settings.pause = config_.snapshot.scrub_interval;
  settings.log_directories = node_directories(config_);
  settings.log_directories.push_back(config_.cluster.data_dir);
  scrubber_ = std::make_unique<Scrubber>(std::move(settings), logger_);
  scrubber_->start();
}

/// Lets transactions begin with a snapshot. REQUIRES: all its files are open (snapshot.open).
void Node::publish_snapshot(const ControlRequest& request, const ControlReply& reply) {
  const Result<uint64_t> id = get_number(request, "id");
  if (!id) return reply(std::unexpected(id.error()));
  const Result<uint64_t> epoch = get_number(request, "epoch");
  if (!epoch) return reply(std::unexpected(epoch.error()));
  const Json list = request.body.value("roots", Json());
  const bool is_list = list.is_array() && std::ranges::all_of(list, [](const Json& root) {
                         return root.is_array() && root.size() == 2 &&
                                root[0].is_number_unsigned() && root[1].is_number_unsigned();
                       });
  if (!is_list || *id == 0 || *id > SnapshotPointer::kMaxSnapshot) {
    return reply(make_error(ExitCode::usage,
                            request.op + ": member \"roots\" must be a list of [storage id, page], "
                                         "\"id\" that of a snapshot"));
  }
  std::vector<SnapshotView::Root> roots;
  for (const Json& root : list) {
    roots.push_back({root[0].get<uint32_t>(), SnapshotPointer(root[1].get<uint64_t>())});
  }
  const Result<void> published = snapshots_->published().publish(
      std::make_unique<SnapshotView>(static_cast<uint32_t>(*id), *epoch, std::move(roots)));
  if (!published) return reply(std::unexpected(published.error()));
  reply(Json::object());
}

void Node::withdraw_snapshots(const ControlRequest& request, const ControlReply& reply) {
  const Json keep = request.body.value("keep", Json());
  const bool is_list = keep.is_array() && std::ranges::all_of(keep, [](const Json& id) {
                         return id.is_number_unsigned();
                       });
  if (!is_list) {
    return reply(make_error(ExitCode::usage,
                            request.op + ": member \"keep\" must be a list of ids of snapshots"));
  }
  snapshots_->published().withdraw_all_but(keep.get<std::set<uint32_t>>());
  reply(Json::object());
}

}  // namespace atolldb
