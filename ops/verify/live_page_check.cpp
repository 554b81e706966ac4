#include "ops/verify/live_page_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Returns the first element of `one` that `other` lacks, or null if there is none.
const LivePages* find_missing(const std::vector<LivePages>& one,
                              const std::vector<LivePages>& other) {
  const auto found = std::ranges::find_if(
      one, [&](const LivePages& live) { return std::ranges::find(other, live) == other.end(); });
  return found == one.end() ? nullptr : &*found;
}

/// Returns how many live pages `all` counts for the storage and file that `file` names.
uint64_t pages_in(const std::vector<LivePages>& all, const LivePages& file) {
  const auto found = std::ranges::find_if(
      all, [&](const LivePages& live) { return live_order(live) == live_order(file); });
  return found == all.end() ? 0 : found->all();
}

}  // namespace

Result<void> check_live_pages(const SnapshotMetadata& snapshot, const SnapshotStorage& storage,
                              const std::vector<LivePages>& walked) {
  CHECK(std::ranges::is_sorted(walked, {}, live_order));
  std::vector<LivePages> counted;
  std::ranges::copy_if(snapshot.live, std::back_inserter(counted),
                       [&](const LivePages& live) { return live.storage_id == storage.id; });
  std::vector<LivePages> found;
  std::ranges::copy_if(walked, std::back_inserter(found), [&](const LivePages& live) {
    return !std::ranges::binary_search(snapshot.uncounted, live.snapshot);
  });
  const LivePages* wrong = find_missing(counted, found);
  if (wrong == nullptr) wrong = find_missing(found, counted);
  if (wrong == nullptr) return {};
  return make_error(
      ExitCode::corruption,
      fmt::format(
          "snapshot {}: storage {} ({}): the metadata count {} live pages in the files of "
          "snapshot {} and node {}, a walk finds {}, or other layers: internal error: "
          "files that are needed may be deleted: take a backup, restore it, and report this",
          snapshot.id, storage.id, storage.name, pages_in(counted, *wrong), wrong->snapshot,
          wrong->node, pages_in(found, *wrong)));
}

}  // namespace atolldb
