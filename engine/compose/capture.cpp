#include "engine/compose/capture.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "engine/compose/tree_builder.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "engine/mastertree/interior_copy.h"
#include "engine/mastertree/prefetch.h"
#include "engine/mastertree/tree_path.h"
#include "engine/transaction/storage_handle.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {

namespace {

/// Maximum number of images that one turn takes. At the end of a turn the capture becomes idle (R9)
/// and writes the images. Then it publishes a new begin epoch for the next turn.
constexpr size_t kImagesPerTurn = 64;
/// Maximum number of parents of border pages that one turn visits.
constexpr uint32_t kParentsPerTurn = 16;
/// Maximum number of attempts to visit pages that are being replaced. Afterwards the log records of
/// their range are gleaned.
constexpr uint32_t kMaxCaptureFailures = 100;

bool are_adjacent(const SliceRange& left, const SliceRange& right) {
  return !left.high_is_end && left.high == right.low;
}

/// Takes an image of one border page. Each record is read between two loads of its VID, and the
/// page word is compared at the end. So the image holds the state of one instant.
class BorderImage {
 public:
  BorderImage(BorderPage* page, const CaptureTask& task) : page_(page), task_(task) {}

  /// Returns false if the page must not be captured, or has changed meanwhile. The content of
  /// `image` is then undefined.
  bool take(PageBuffer& image) {
    DCHECK(page_->is_border() && page_->header.is_snapshot == 0);
    version_ = page_->header.version();
    if (version_.is_moved() || version_.count() > kBorderSlotBound) return false;
    if (!examine() || !is_worth_it()) return false;
    sort();
    reach(SyncPoint::capturing);
    copy(image);
    return is_unchanged();
  }

 private:
  struct Slot {
    uint64_t slice;
    TreeRecord* record;
    Vid vid;
    uint16_t remainder;
    uint16_t payload_bytes;
  };

  /// Collects the living records. Returns false if the page has changes after the snapshot's epoch,
  /// none since the base, or a layer below it.
  bool examine() {
    uint64_t newest = page_->header.max_removed_vid.load(std::memory_order_acquire);
    if (Vid(newest).epoch() > task_.epoch && !fault::capture_forgets_removed) return false;
    for (uint32_t at = 0; at < version_.count(); ++at) {
      TreeRecord* record = page_->record(at);
      const Vid vid = record->head.load_acquire();
      vids_[at] = vid;
      if (vid.is_being_written() || vid.is_relocated()) return false;
      // A VID with ordinal 0 stands for no commit: its record was only reserved (R10).
      const bool is_reserved = vid.ordinal() == 0 && vid.is_deleted();
      if (vid.epoch() > task_.epoch && !is_reserved && !fault::capture_later_changes) return false;
      if (!is_reserved) newest = std::max(newest, vid.version());
      if (vid.is_deleted()) continue;
      const uint16_t payload_bytes = record->payload_bytes.load(std::memory_order_relaxed);
      if (payload_bytes > record->capacity) return false;  // a torn read
      slots_[count_++] = {page_->slices()[at], record, vid, record->head.remainder, payload_bytes};
      bytes_ += kSlotBytes +
                TreeRecord::bytes_for(record->head.remainder, capacity_of(slots_[count_ - 1]));
    }
    return Vid(newest).epoch() > task_.base_epoch;
  }

  bool is_worth_it() const {
    // More bytes than a page has can only be the result of a torn read.
    if (count_ == 0 || bytes_ > kBorderUsableBytes) return false;
    return bytes_ >= task_.least_bytes || count_ >= kMaxBorderSlots / 2;
  }

  void sort() {
    const auto order = [](const Slot& slot) {
      return std::pair(slot.slice, length_class(slot.remainder));
    };
    if (version_.is_ascending()) return;
    insertion_sort(slots_.data(), count_,
                   [&](const Slot& a, const Slot& b) { return order(a) < order(b); });
  }

  void copy(PageBuffer& image) {
    DCHECK(count_ > 0 && count_ <= version_.count());
    std::memset(image.bytes, 0, sizeof image.bytes);
    format_border(image, page_->header.layer, count_, bytes_, range_of(*page_));
    auto* to = image.as<BorderPage>();
    for (uint32_t at = 0; at < count_; ++at) {
      const Slot& slot = slots_[at];
      TreeRecord* record = write_slot(to, at, slot.slice, slot.remainder, slot.record->suffix(),
                                      capacity_of(slot), Vid(slot.vid.version()));
      record->payload_bytes.store(slot.payload_bytes, std::memory_order_relaxed);
      racy_read(record->payload(), slot.record->payload(), slot.payload_bytes);
    }
  }

  /// Compares the page word and all VIDs with those before the copy.
  bool is_unchanged() const {
    // racy_read ends with an acquire fence, so the copy's loads come before these.
    if (fault::capture_without_recheck) return true;
    for (uint32_t at = 0; at < version_.count(); ++at) {
      if (page_->record(at)->head.load_acquire() != vids_[at]) return false;
    }
    return page_->header.version() == version_;
  }

  static uint32_t capacity_of(const Slot& slot) {
    return TreeRecord::capacity_for(slot.remainder, slot.payload_bytes);
  }

  BorderPage* page_;
  const CaptureTask& task_;
  PageVersion version_;
  std::array<Vid, kBorderSlotBound> vids_;    // of all slots
  std::array<Slot, kBorderSlotBound> slots_;  // living records
  uint32_t count_ = 0;
  uint32_t bytes_ = 0;
};

class TreeCapture {
 public:
  TreeCapture(WorkerContext& worker, StorageControl& storage, const CaptureTask& task,
              std::vector<CapturedPage>& captured)
      : worker_(worker),
        storage_(storage),
        id_(storage.id),
        task_(task),
        captured_(captured),
        next_(task.range.low) {}

  Result<void> run() {
    // Acquire pairs with the coordinator's release store: all commits up to the epoch are visible.
    // This word may be lower than the durable epoch for an instant. Then nothing is captured.
    const EpochBlock& epochs = worker_.view().control->epochs;
    has_ended_ = epochs.settled.load(std::memory_order_acquire) < task_.epoch;
    while (!has_ended_) {
      if (task_.cancelled && task_.cancelled()) {
        return make_error(ExitCode::failed, "the capture of pages was cancelled");
      }
      worker_.enter();
      if (worker_.cluster_failed()) {
        worker_.leave();
        return make_error(ExitCode::failed, "the cluster has failed");
      }
      walk();
      worker_.leave();
      ATOLL_TRY(write());
    }
    return {};
  }

 private:
  struct Child {
    SliceRange range;
    VolatilePointer page;
  };

  /// Visits pages until the turn is over, or the pages on the path are being replaced.
  void walk() {
    if (!is_storage_ready(storage_, id_)) has_ended_ = true;
    for (uint32_t parents = 0; !is_turn_over() && parents < kParentsPerTurn; ++parents) {
      if (!visit_parent()) {
        sched_yield();
        return;
      }
    }
  }

  bool is_turn_over() const { return has_ended_ || count_ == kImagesPerTurn; }

  /// Visits the border pages below one parent, from `next_` on. Returns false if the pages on the
  /// path are being replaced; the next turn tries again.
  bool visit_parent() {
    const bool is_found = reach_path(worker_, storage_, root_link(storage_), next_, path_);
    if (is_found && path_.size != 0 && path_.steps[path_.size - 1].page->header.level == 1) {
      InteriorPage& parent = *path_.steps[path_.size - 1].page;
      if (collect(parent)) {
        visit_children();
        if (!is_turn_over()) pass(range_of(parent));
        failures_ = 0;
        return true;
      }
    } else if (is_found) {
      // The tree is at most one page, or the rest of the path is in a snapshot.
      pass(path_.range);
      return true;
    }
    if (++failures_ < kMaxCaptureFailures) return false;
    failures_ = 0;
    static_cast<void>(find_path(worker_, root_link(storage_), next_, path_));
    pass(path_.range);  // the log records of this range are gleaned
    return true;
  }

  /// Copies the ranges of the page's children and the pointers to them. Returns false if the page
  /// has changed meanwhile.
  bool collect(const InteriorPage& page) {
    const PageVersion version = page.header.version();
    if (version.is_moved()) return false;
    const ChildRanges children(page, version.count());
    child_count_ = children.size();
    DCHECK(child_count_ <= children_.size());
    for (uint32_t i = 0; i < child_count_; ++i) {
      children_[i] = {children.range(i), page.children[children[i]].load_acquire()};
    }
    return page.header.version() == version;
  }

  void visit_children() {
    for (uint32_t i = 0; i < child_count_ && !is_turn_over(); ++i) {
      const Child& child = children_[i];
      if (!child.range.high_is_end && child.range.high <= next_) continue;
      prefetch_walk([&](uint32_t distance) { return border_of_child(i + distance); });
      if (!child.page.is_null() && !child.page.is_frozen()) visit(child.page);
      pass(child.range);
    }
  }

  /// Returns null if there is no such child in memory.
  BorderPage* border_of_child(uint32_t number) const {
    if (number >= child_count_ || children_[number].page.is_null()) return nullptr;
    return border_page(tree_page(worker_.view().resolve(children_[number].page.thawed())));
  }

  void visit(VolatilePointer pointer) {
    DCHECK(!pointer.is_null() && count_ < kImagesPerTurn);
    TreePage* page = tree_page(worker_.view().resolve(pointer));
    // A moved page is not captured: its log records are gleaned. For example, it was split, and its
    // parent has not adopted the halves yet.
    if (page->header.version().is_moved() || !page->is_border()) return;
    const SliceRange range = range_of(*page);
    const bool is_inside =
        range.low >= next_ &&
        (task_.range.high_is_end || (!range.high_is_end && range.high <= task_.range.high));
    if (!is_inside || (!continues_range(range) && ranges_ == task_.max_ranges)) return;
    if (!BorderImage(border_page(page), task_).take(images_[count_])) return;
    ranges_ += continues_range(range) ? 0 : 1;
    taken_[count_++] = range;
    last_ = range;
    has_last_ = true;
    pass(range);
  }

  bool continues_range(const SliceRange& range) const {
    return has_last_ && are_adjacent(last_, range);
  }

  /// Lets the walk continue after this range, or ends it if nothing is left.
  void pass(const SliceRange& range) {
    has_ended_ = has_ended_ || range.high_is_end ||
                 (!task_.range.high_is_end && range.high >= task_.range.high);
    if (!range.high_is_end) next_ = std::max(next_, range.high);
  }

  /// Writes the images of this turn.
  Result<void> write() {
    const size_t count = std::exchange(count_, 0);
    CHECK(worker_.slot().begin_epoch.load(std::memory_order_relaxed) == kIdleEpoch);
    for (size_t i = 0; i < count; ++i) {
      ATOLL_ASSIGN(const SnapshotPointer page, task_.write(images_[i]));
      CHECK(!page.is_null());
      CHECK(captured_.empty() || captured_.back().range.high <= taken_[i].low);
      captured_.push_back({taken_[i], page, images_[i].header().version().count()});
    }
    return {};
  }

  WorkerContext& worker_;
  StorageControl& storage_;
  const uint32_t id_;
  const CaptureTask& task_;
  std::vector<CapturedPage>& captured_;
  uint64_t next_;  // slice from which pages are still to be visited
  bool has_ended_ = false;
  uint32_t failures_ = 0;
  TreePath path_;
  std::array<Child, kInteriorCapacity> children_;
  uint32_t child_count_ = 0;
  std::vector<PageBuffer> images_{kImagesPerTurn};
  std::array<SliceRange, kImagesPerTurn> taken_;
  size_t count_ = 0;  // number of images
  SliceRange last_;   // range of the last captured page
  bool has_last_ = false;
  size_t ranges_ = 0;
};

}  // namespace

Result<void> FenceMapSource::capture_pages_of(uint32_t, const CaptureTask&,
                                              std::vector<CapturedPage>&) {
  return {};
}

Result<void> capture_pages(WorkerContext& worker, StorageControl& storage, const CaptureTask& task,
                           std::vector<CapturedPage>& captured) {
  CHECK(task.write && task.base_epoch <= task.epoch);
  CHECK(task.range.high_is_end || task.range.low < task.range.high);
  return std::make_unique<TreeCapture>(worker, storage, task, captured)->run();
}

void add_captured_ranges(uint32_t storage_id, const std::vector<CapturedPage>& pages,
                         std::vector<CapturedRange>& ranges) {
  const SliceRange* last = nullptr;
  for (const CapturedPage& page : pages) {
    CHECK(last == nullptr || (!last->high_is_end && last->high <= page.range.low));
    if (last != nullptr && are_adjacent(*last, page.range)) {
      ranges.back().high = page.range.high;
      ranges.back().high_is_end = page.range.high_is_end;
    } else {
      ranges.push_back({storage_id, page.range.low, page.range.high, page.range.high_is_end});
    }
    last = &page.range;
  }
}

}  // namespace atolldb
