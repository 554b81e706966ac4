// Live pages of a snapshot: the pages of its files that its storages use, counted by storage and
// file (R67). All other pages of the files are garbage. Composers report the pages that they write
// and the base pages that they replace, so no job has to walk a whole snapshot.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "engine/format/byte_stream.h"
#include "shared/base/error.h"
#include "shared/base/pointer.h"

namespace atolldb {

/// Pages of one storage in one file.
struct LivePages {
  uint32_t storage_id = 0;
  uint32_t snapshot = 0;
  uint32_t node = 0;  // number of a node, or kCoordinator
  uint64_t first_layer = 0;
  uint64_t next_layers = 0;  // Master-tree: pages of all layers below the first one

  uint64_t all() const { return first_layer + next_layers; }
  bool operator==(const LivePages&) const = default;
};

template <typename Archive>
void fields(Archive& archive, Described<Archive, LivePages>& pages) {
  archive(pages.storage_id, pages.snapshot, pages.node, pages.first_layer, pages.next_layers);
}

/// Sort key of a list of LivePages.
inline std::tuple<uint32_t, uint32_t, uint32_t> live_order(const LivePages& pages) {
  return {pages.storage_id, pages.snapshot, pages.node};
}

/// Counts pages by storage and file. Thread: one at a time.
class PageCounts {
 public:
  /// Counts one page. `layer`: layer of the page, or 0 in arrays and sequential storages.
  void add(uint32_t storage_id, SnapshotPointer page, uint32_t layer);
  void add(const std::vector<LivePages>& pages);
  /// Returns the counts that are not 0, ascending by live_order.
  std::vector<LivePages> list() const;

 private:
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, LivePages> counts_;
};

/// Returns the live pages of the snapshot that a job has made: those of the base, minus the
/// replaced ones, plus the written ones. `uncounted`: snapshots whose pages `base` does not count,
/// ascending; their replaced pages are ignored.
/// Error: code failed if more pages of a file were replaced than were live: an internal error.
Result<std::vector<LivePages>> live_pages_after(const std::vector<LivePages>& base,
                                                const std::vector<uint32_t>& uncounted,
                                                const std::vector<LivePages>& replaced,
                                                const std::vector<LivePages>& written);

}  // namespace atolldb
