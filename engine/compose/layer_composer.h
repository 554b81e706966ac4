// Composer of one layer of a Master-tree. It merges the layer's base pages with the log records
// whose keys begin with the layer's prefix. The result is the layer's pages in the new snapshot.
// Source: [FOEDUS15] sections 7.3, 8.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/compose/compose.h"
#include "engine/compose/log_input.h"
#include "engine/compose/page_output.h"
#include "engine/compose/record_fold.h"
#include "engine/compose/tree_builder.h"
#include "engine/gleaner/victims.h"

namespace atolldb {

inline bool equal(const SliceRange& a, const SliceRange& b) {
  return a.low == b.low && a.high_is_end == b.high_is_end && (a.high_is_end || a.high == b.high);
}

/// The children, up to `end`, of a page of level 1 that were requested before the page was reached.
struct RequestedChildren {
  SnapshotPointer page;
  uint32_t end = 0;
};

/// State that all layers of a task share.
struct TreeWork {
  PageOutput& pages;
  LogInput logs;
  RecordFold fold;
  uint64_t epoch;          // epoch of the snapshot
  Victims victims;         // pages to copy
  FenceMapSource* fences;  // null: there are no volatile pages
  bool salvages;           // data of the base that cannot be read is omitted
  const std::function<void(const UnreadablePage&)>& on_unreadable;  // may be empty
  std::span<const CapturedPage> captured;  // captured pages that were not used yet
  bool has_next_layers;                    // the base may hold pages of layers below the first one
  RequestedChildren requested = {};
  uint64_t captured_over = 0;  // pages of the base that captured pages replace, without edge pages
};

/// The right sibling of a page of the base.
struct NextPage {
  SliceRange range;
  SnapshotPointer page;
  SnapshotPointer after;  // its own right sibling below the same parent, or null
};

/// A record that moves to a layer below, with the rest of its key from that layer on.
struct CarriedRecord {
  std::string rest;
  std::string payload;
  Vid vid;
};

/// The result of composing a layer. Both members are empty if no records are left.
struct LayerResult {
  SnapshotPointer root;
  std::optional<CarriedRecord> single;  // the only record, if it needs no layer of its own
};

class LayerComposer {
 public:
  /// `prefix`: the slices of the layers above, 8 bytes each.
  LayerComposer(TreeWork& work, std::string prefix, const SliceRange& range);

  /// Composes the part of the first layer that lies in the range. Returns pages of one level, which
  /// is stored in `level`, or a single null page if there are no records.
  Result<std::vector<TreeChild>> compose_partition(SnapshotPointer base, uint32_t& level);
  /// Composes a lower layer that has pages in the base.
  Result<LayerResult> compose(SnapshotPointer base);
  /// Composes a lower layer that has no pages in the base. `carried`: records in ascending order.
  /// They are merged with the log records of the layer. Returns a sole record as `single`, unless
  /// `keeps_single` is set or the layer has volatile pages.
  Result<LayerResult> compose(std::span<const CarriedRecord> carried, bool keeps_single);

 private:
  bool has_log() const {
    return work_.logs.current() != nullptr && (prefix_.empty() || is_log_below_prefix());
  }
  bool is_log_below_prefix() const;
  bool has_log(const SliceRange& range) const { return has_log() && range.contains(log_slice()); }
  bool has_log_at(uint64_t slice) const { return has_log() && log_slice() == slice; }
  Bytes log_rest() const {
    DCHECK(has_log());
    return work_.logs.current()->key_span().subspan(prefix_.size());
  }
  uint64_t log_slice() const {
    return prefix_.empty() ? work_.logs.first_slice() : slice_of(log_rest());
  }
  bool is_inside(const SliceRange& range) const;
  bool overlaps(const SliceRange& range) const;
  SliceRange clip(const SliceRange& range) const;

  Result<void> compose_tree(SnapshotPointer root);
  Result<void> compose_node(SnapshotPointer page, uint32_t level, const SliceRange& range,
                            const std::optional<NextPage>& next);
  Result<void> compose_page(SnapshotPointer pointer, PageBuffer& page,
                            const std::optional<NextPage>& next);
  /// Returns whether the new snapshot can use `page` unchanged: neither the page nor a page below
  /// it is in a victim. REQUIRES: the page was read, and its range has no log records.
  Result<bool> needs_no_copy(SnapshotPointer pointer, PageBuffer& page) const;
  /// Returns whether the children of a root page may be reused unchanged (FenceMap::fits). A root
  /// of level 0 has no children: it fits if no volatile pages below the volatile root are known.
  bool children_fit(PageBuffer& page) const;
  Result<bool> leads_to_victims(PageBuffer& page) const;
  Result<bool> has_victims_at(SnapshotPointer pointer, uint32_t layer, uint32_t level) const;
  void count_replaced(SnapshotPointer pointer, uint64_t low);
  Result<void> compose_interior(SnapshotPointer pointer, const InteriorPage& page,
                                const std::optional<NextPage>& next);
  // The next two functions are in layer_composer_ahead.cpp.
  /// Requests the children, from `first` on, that will be read: those that have log records or may
  /// be victims. Stops where the coming log records are not known yet, or if there is no more room.
  /// Returns the first child that it has not decided about. `also`: null, or a page that is
  /// requested before them.
  uint32_t request_children(const InteriorPage& page, uint32_t first, SnapshotPointer also = {});
  void request_sibling(const std::optional<NextPage>& next);
  // The next functions, in layer_composer_lost.cpp, handle pages that cannot be read (R56).
  /// Finds the page to which a base pointer leads. Adds the held records of `range` to the log
  /// input.
  Result<FoundPage> find_page(SnapshotPointer pointer, PageBuffer& page, const SliceRange& range);
  /// Composes the range of a page that cannot be read. `is_whole`: `range` is the whole range of
  /// the page, not a part.
  Result<void> compose_lost(SnapshotPointer pointer, FoundPage& found, uint32_t level,
                            const SliceRange& range, bool is_whole);
  Result<void> end_before(uint32_t level, uint64_t low);
  /// Handles an update of a record that does not exist. Returns an error; a salvage skips and
  /// reports the update instead.
  Result<void> skip_unbacked(const std::string& key);
  void report_lost(SnapshotPointer page, uint32_t level, const SliceRange& range,
                   const std::string& reason) const;
  // The next two functions are in layer_composer.cpp.
  Result<void> compose_records(const SliceRange& range, const std::optional<NextPage>& next);
  Result<void> compose_rest(const SliceRange& range, size_t at,
                            const std::optional<NextPage>& next);
  // The next functions, in layer_composer_captured.cpp, handle captured pages (R75).
  /// Returns the next captured page if it begins before the end of `range`, else null.
  const CapturedPage* next_captured(const SliceRange& range) const;
  /// Returns whether the page that was captured last extends past `slice`.
  bool is_captured_past(uint64_t slice) const;
  bool has_captured(const SliceRange& range) const {
    return next_captured(range) != nullptr || is_captured_past(range.low);
  }
  /// Returns whether a page may end at the end of `range`. It may not if the page that was captured
  /// last extends past that end.
  bool may_end(const SliceRange& range) const {
    return range.high_is_end || !is_captured_past(range.high);
  }
  /// Returns whether the base page of this range need not be read: `captured`, the captured pages
  /// from the range on, take its whole place, and no layer is below it.
  bool is_replaced_unread(std::span<const CapturedPage> captured, SnapshotPointer page,
                          const SliceRange& range) const;
  /// Counts a page of the base for which is_replaced_unread is true, and its records. Reads the
  /// page if it lies at a bound of the partition, is cached, or belongs to the sample.
  void count_replaced_unread(SnapshotPointer pointer, const SliceRange& range);
  /// Returns whether the whole range of a page lies inside the composer's range, without reaching
  /// its bounds. There are at most two other pages.
  bool is_off_the_bounds(const SliceRange& range) const;
  /// Composes the part of a range up to the end of the last captured page in it. Returns the rest,
  /// or nothing if no rest is left. `at`, here and below: index in items_ of the next item; the
  /// functions advance it.
  Result<std::optional<SliceRange>> compose_captured(const SliceRange& range, size_t& at);
  Result<void> add_captured(const CapturedPage& page);
  Result<void> skip_items(size_t& at);
  Result<void> replace_layer(SnapshotPointer pointer, uint32_t layer, uint32_t level);
  std::unexpected<Error> no_place_for_captured(const SliceRange& range,
                                               const std::string& reason) const;
  // All functions from here on are in layer_composer.cpp.
  Result<void> add_cut_records(const SliceRange& range, size_t& at);
  Result<void> add_records(const SliceRange& range, size_t& at);
  Result<LayerResult> finish();
  Result<void> collect_fences();
  Result<void> pass(uint64_t slice);

  void take_items(const BorderPage& page);
  Result<void> compose_slice(uint64_t slice, size_t& at);
  Result<void> compose_record(uint64_t slice, uint16_t remainder, const TreeItem* base);
  Result<void> compose_beyond(uint64_t slice, std::span<const TreeItem> base);
  Result<void> fold_logs(uint64_t slice, Bytes key);
  Result<void> add_sublayer(uint64_t slice, Result<LayerResult> below);
  Result<void> add_beyond(const TreeItem& item);
  LayerComposer below(uint64_t slice) const;
  std::string full_key(uint64_t slice, Bytes rest) const;

  TreeWork& work_;
  std::string prefix_;
  SliceRange range_;
  FenceMap fences_;  // fence map of the layer's volatile pages
  TreeBuilder builder_;
  std::vector<TreeItem> items_;              // records of the current base page, or carried records
  std::optional<SliceRange> last_captured_;  // range of the captured page that was added last
};

}  // namespace atolldb
