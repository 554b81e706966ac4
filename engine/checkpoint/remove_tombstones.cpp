#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/replay.h"
#include "engine/mastertree/descent.h"
#include "engine/mastertree/reclaim.h"
#include "engine/mastertree/restructure.h"
#include "engine/mastertree/tree_path.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Minimum length of a run of empty pages that is merged.
constexpr uint32_t kMinRunOfRemoval = 2;

class TombstoneRemoval {
 public:
  TombstoneRemoval(WorkerContext& worker, StorageControl& storage)
      : worker_(worker), storage_(storage) {}

  /// Removes the tombstones of the layer that the keys with `prefix` share, and of the layers
  /// below.
  void clean_layer(const std::string& prefix) {
    DCHECK(prefix.size() % 8 == 0);
    uint64_t slice = 0;
    for (bool is_last = false; !is_last;) {
      SliceRange range;
      const std::vector<uint64_t> layers = layers_below(prefix, slice, range);
      for (const uint64_t layer : layers) {
        std::string below = prefix;
        below.resize(prefix.size() + 8);
        put_slice(layer, reinterpret_cast<std::byte*>(below.data() + prefix.size()));
        clean_layer(below);
      }
      clean_page(prefix, slice);
      is_last = range.high_is_end;
      CHECK(is_last || range.high > slice);
      slice = range.high;
    }
  }
  uint64_t replaced() const { return replaced_; }

 private:
  /// Enters the current epoch and finds the page of the slice. Returns false if there is none.
  bool find(const std::string& prefix, uint64_t slice, Link& root, BorderView& view) {
    worker_.enter();
    root = root_link(storage_);
    if (!find_layer_below(worker_, storage_, std::as_bytes(std::span(prefix)), root)) return false;
    view = find_border(worker_, storage_, root, slice, Adoption::whole_way);
    return view.page != nullptr;
  }

  /// Returns the slices that lead to next layers in the page, and the page's range. Without a page
  /// the range is the rest of the layer.
  std::vector<uint64_t> layers_below(const std::string& prefix, uint64_t slice, SliceRange& range) {
    std::vector<uint64_t> layers;
    range = SliceRange{};
    Link root;
    BorderView view;
    if (!find(prefix, slice, root, view)) return layers;
    range = range_of(*view.page);
    for (uint32_t slot = 0; slot < view.version.count(); ++slot) {
      const bool is_layer = view.page->record(slot)->head.load_acquire().is_next_layer();
      if (is_layer) layers.push_back(view.page->slices()[slot]);
    }
    return layers;
  }

  void clean_page(const std::string& prefix, uint64_t slice) {
    Link root;
    BorderView view;
    if (!find(prefix, slice, root, view)) return;
    if (content_of(worker_, view.page, view.version).removable == 0) return;
    if (!compact(worker_, view.page, false)) return;
    ++replaced_;
    view = find_border(worker_, storage_, root, slice, Adoption::whole_way);
    const bool is_empty = view.page != nullptr && view.version.count() == 0;
    if (is_empty && merge_around(worker_, storage_, root, slice, kMinRunOfRemoval)) ++replaced_;
  }

  WorkerContext& worker_;
  StorageControl& storage_;
  uint64_t replaced_ = 0;
};

}  // namespace

uint64_t remove_tombstones(WorkerContext& worker, StorageControl& storage) {
  if (!is_tree(storage.type)) return 0;
  TombstoneRemoval removal(worker, storage);
  removal.clean_layer("");
  worker.leave();
  return removal.replaced();
}

}  // namespace atolldb
