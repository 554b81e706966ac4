// The requests snapshot.* that the node serves itself. They decide which files are open, and with
// which snapshots transactions may begin (R18).
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shared/base/try.h"
#include "soc/node/node.h"

namespace atolldb {
namespace {

Result<SnapshotFilePlace> place_of(const ControlRequest& request, const Json& entry) {
  const ControlRequest member{request.operation, entry};
  ATOLL_ASSIGN(const uint64_t snapshot, get_number(member, "snapshot"));
  ATOLL_ASSIGN(const uint64_t node, get_number(member, "node"));
  ATOLL_ASSIGN(std::string directory, get_text(member, "directory"));
  ATOLL_ASSIGN(const uint64_t page_count, get_number(member, "page_count"));
  return SnapshotFilePlace{static_cast<uint32_t>(snapshot), static_cast<uint32_t>(node),
                           std::move(directory), page_count};
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

/// Reads a list of [storage id, page].
Result<std::vector<SnapshotView::Root>> roots_of(const ControlRequest& request) {
  const Json list = request.body.value("roots", Json());
  const bool is_list = list.is_array() && std::ranges::all_of(list, [](const Json& root) {
                         return root.is_array() && root.size() == 2 &&
                                root[0].is_number_unsigned() && root[1].is_number_unsigned();
                       });
  if (!is_list) {
    return make_error(ExitCode::usage,
                      request.op + ": member \"roots\" must be a list of [storage id, page]");
  }
  std::vector<SnapshotView::Root> roots;
  for (const Json& root : list) {
    roots.push_back({root[0].get<uint32_t>(), SnapshotPointer(root[1].get<uint64_t>())});
  }
  return roots;
}

}  // namespace

Result<Json> Node::open_snapshots(const ControlRequest& request) {
  ATOLL_ASSIGN(const auto places, places_of(request, "places"));
  ATOLL_ASSIGN(const auto kept, places_of(request, "kept"));
  std::vector<SnapshotFilePlace> all = places;
  all.insert(all.end(), kept.begin(), kept.end());
  scrubber_->set_files(all);
  const auto open = [&] { return snapshots_->files().open_only(places); };
  ATOLL_TRY(warmer_ == nullptr ? open() : warmer_->while_paused(open));
  return Json::object();
}

/// Lets transactions begin with a snapshot. REQUIRES: all its files are open (snapshot.open).
Result<Json> Node::publish_snapshot(const ControlRequest& request) {
  ATOLL_ASSIGN(const uint64_t id, get_number(request, "id"));
  ATOLL_ASSIGN(const uint64_t epoch, get_number(request, "epoch"));
  ATOLL_ASSIGN(auto roots, roots_of(request));
  if (id == 0 || id > SnapshotPointer::kMaxSnapshot) {
    return make_error(ExitCode::usage, request.op + ": member \"id\" must be from 1 to " +
                                           std::to_string(SnapshotPointer::kMaxSnapshot) +
                                           ", not " + std::to_string(id));
  }
  ATOLL_TRY(snapshots_->published().publish(
      std::make_unique<SnapshotView>(static_cast<uint32_t>(id), epoch, std::move(roots))));
  return Json::object();
}

Result<Json> Node::withdraw_snapshots(const ControlRequest& request) {
  const Json keep = request.body.value("keep", Json());
  const bool is_list = keep.is_array() && std::ranges::all_of(keep, [](const Json& id) {
                         return id.is_number_unsigned();
                       });
  if (!is_list) {
    return make_error(ExitCode::usage,
                      request.op + ": member \"keep\" must be a list of ids of snapshots");
  }
  snapshots_->published().withdraw_all_but(keep.get<std::set<uint32_t>>());
  return Json::object();
}

/// Serves snapshot.reads: the pages that the cache has read since the last such request.
Json Node::take_recent_reads() {
  const ReadPages reads = snapshots_->cache().take_recent_reads();
  Json pages = Json::array();
  for (const ReadPage& page : reads.pages) pages.push_back({page.storage_id, page.key});
  return {{"count", reads.count}, {"pages", std::move(pages)}};
}

}  // namespace atolldb
