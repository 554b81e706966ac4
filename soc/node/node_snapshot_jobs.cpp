// The node's resources for the gleaner: snapshot files, memory of inboxes, and removal of leftover
// sorted runs.
#include <algorithm>
#include <utility>

#include "engine/gleaner/sorted_run.h"
#include "shared/base/try.h"
#include "soc/node/node.h"
#include "soc/node/node_segments.h"

namespace atolldb {
namespace {

Result<SnapshotFilePlace> place_of(const ControlRequest& request, const Json& entry) {
  const ControlRequest member{request.op, entry};
  SnapshotFilePlace place;
  const auto snapshot = get_number(member, "snapshot");
  const auto node = get_number(member, "node");
  const auto directory = get_text(member, "directory");
  const auto page_count = get_number(member, "page_count");
  if (!snapshot) return std::unexpected(snapshot.error());
  if (!node) return std::unexpected(node.error());
  if (!directory) return std::unexpected(directory.error());
  if (!page_count) return std::unexpected(page_count.error());
  return SnapshotFilePlace{static_cast<uint32_t>(*snapshot), static_cast<uint32_t>(*node),
                           *directory, *page_count};
}

/// Reads a list of files. A missing member names no files.
Result<std::vector<SnapshotFilePlace>> places_of(const ControlRequest& request,
                                                 const char* member) {
  const Json list = request.body.value(member, Json::array());
  if (!list.is_array()) {
    return make_error(ExitCode::usage,
                      request.op + ": member \"" + member + "\" must be a list of files");
  }
  std::vector<SnapshotFilePlace> places;
  for (const Json& entry : list) {
    ATOLL_ASSIGN(auto place, place_of(request, entry));
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace

Result<void> Node::start_gleaning() {
  if (files_ == nullptr) return {};
  const auto directories = static_cast<uint32_t>(config_.nodes[node_].directories.size());
  for (uint32_t i = 0; i < std::max(directories, 1u); ++i) {
    ATOLL_TRY(remove_sorted_runs(*files_, log_directory(config_, node_, i), node_));
  }
  GleanPlaces places;
  places.node = node_;
  places.file_system = files_.get();
  places.snapshots = &snapshots_->files();
  // The node's directories take turns, as for its loggers.
  places.directory = [this](uint32_t snapshot) { return log_directory(config_, node_, snapshot); };
  places.inbox = [this](const ReducerPlace& place) -> std::byte* {
    const bool is_there =
        place.node < exchange_.size() && place.reducer < config_.nodes[place.node].reducers;
    return is_there ? exchange_[place.node] + inbox_offset(config_, place.reducer) : nullptr;
  };
  // Before the cluster runs there are no volatile pages. Acquire pairs with the coordinator's
  // release.
  places.shapes = [this]() -> ShapeSource* {
    const auto state = view_.control->state.load(std::memory_order_acquire);
    return state < static_cast<uint32_t>(ClusterState::running) ? nullptr : visitor_.get();
  };
  places.has_failed = [this] {
    return view_.control->state.load(std::memory_order_relaxed) >= kClusterFailedFrom;
  };
  gleaner_ = std::make_unique<GleanService>(std::move(places), logger_);
  return {};
}

/// Publishes the gauges of snapshots, gleaner and scrub. REQUIRES: the node runs, or has run.
void Node::publish_gleaner() {
  if (gleaner_ == nullptr) return;
  // Relaxed: for display; each figure is valid on its own.
  const auto put = [](std::atomic<uint64_t>& word, uint64_t value) {
    word.store(value, std::memory_order_relaxed);
  };
  SnapshotCacheMetrics& cache = metrics_->snapshot_cache;
  const SnapshotCache::Statistics statistics = snapshots_->cache().statistics();
  put(cache.frames, statistics.frames);
  put(cache.frames_in_use, statistics.frames_in_use);
  put(cache.misses, statistics.misses);
  put(cache.evictions, statistics.evictions);
  GleanerMetrics& gleaner = metrics_->gleaner;
  const SnapshotJobProgress total = gleaner_->total();
  put(gleaner.phase, static_cast<uint64_t>(gleaner_->phase()));
  for (const SnapshotJobCounter& each : kSnapshotJobCounters) {
    put(gleaner.*each.total, total.*each.progress);
  }
  const ScrubProgress scrub = scrubber_->progress();
  put(gleaner.scrubbed_bytes, scrub.bytes_read);
  put(gleaner.scrub_damaged, scrub.damaged);
  put(gleaner.scrub_percent, scrub.percent);
  put(gleaner.scrub_finished_s, scrub.finished_at_s);
}

void Node::open_snapshots(const ControlRequest& request, const ControlReply& reply) {
  const auto places = places_of(request, "places");
  if (!places) return reply(std::unexpected(places.error()));
  const auto kept = places_of(request, "kept");
  if (!kept) return reply(std::unexpected(kept.error()));
  std::vector<SnapshotFilePlace> all = *places;
  all.insert(all.end(), kept->begin(), kept->end());
  scrubber_->set_files(all);
  const Result<void> opened = snapshots_->files().open_only(*places);
  if (!opened) return reply(std::unexpected(opened.error()));
  reply(Json::object());
}

}  // namespace atolldb
