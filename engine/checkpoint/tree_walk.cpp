#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "engine/checkpoint/range_walk.h"
#include "engine/format/tree_page.h"
#include "engine/mastertree/descent.h"
#include "engine/mastertree/mastertree.h"
#include "engine/transaction/optimistic_read.h"
#include "shared/base/check.h"
#include "shared/sync/racy_copy.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

/// Walks the records of a tree in key order. The position is the smallest key that was not visited.
/// Every page is found from the root, so a walk depends on no page that it has left. It adopts no
/// page and sets no reference bit, so it writes nothing to the pages.
class TreeRangeWalk final : public RangeWalk {
 public:
  TreeRangeWalk(WorkerContext& worker, StorageControl& storage, const CheckpointRules& rules,
                const KeyRange& range)
      : RangeWalk(worker, storage, rules), position_(range.low), high_(range.high) {}

  Status copy_page(CheckpointWriter& writer, bool& is_at_end) override {
    for (uint32_t turns = 0;;) {
      is_at_end = is_past_end(position()) || !is_ready();
      if (is_at_end) return Status::ok;
      const Step step = visit(writer);
      is_at_end = step == Step::end;
      if (step == Step::failed) return Status::cluster_failed;
      if (step != Step::again) return Status::ok;
      // A page on the path is being replaced.
      if (spin_or_yield(turns) && worker_.cluster_failed()) return Status::cluster_failed;
    }
  }

 private:
  enum class Step : uint8_t { page, end, again, below, failed };

  Bytes position() const { return std::as_bytes(std::span(position_)); }
  bool is_past_end(Bytes key) const {
    return high_.has_value() && compare_keys(key, std::as_bytes(std::span(*high_))) >= 0;
  }

  /// Visits the border page of the position: descends through the layers, then copies records.
  Step visit(CheckpointWriter& writer) {
    DualPointer* root = &storage_.root;
    for (size_t at = 0;; at += 8) {
      DCHECK(at <= position_.size());
      PageVersion version;
      const uint64_t slice = slice_of(position().subspan(at));
      BorderPage* page = find_page(*root, slice, version);
      if (page == nullptr) return at == 0 && is_empty() ? Step::end : Step::again;
      DualPointer* layer = nullptr;
      const Step step = copy_records(writer, page, version, at, layer);
      if (step != Step::below) return step;
      root = layer;
    }
  }

  bool is_empty() const {
    if (!storage_.root.load_acquire().is_null()) return false;
    CHECK(storage_.root.snapshot_word.load(std::memory_order_relaxed) == 0);
    return true;
  }

  /// Returns the border page of the slice, and its version. Returns null if a page on the path is
  /// missing or being replaced.
  BorderPage* find_page(const DualPointer& root, uint64_t slice, PageVersion& version) const {
    const VolatilePointer word = root.load_acquire();
    TreePage* page = word.is_null() ? nullptr : tree_page(worker_.view().resolve(word.thawed()));
    while (page != nullptr) {
      version = page->header.version();
      if (version.is_moved()) {
        page = twin_of(page, slice);
      } else if (!page->contains(slice)) {
        return nullptr;
      } else if (page->is_border()) {
        return border_page(page);
      } else {
        page = child_of(interior_page(page), version, slice);
      }
    }
    return nullptr;
  }

  TreePage* twin_of(TreePage* page, uint64_t slice) const {
    const VolatilePointer twin = page->twin_for(slice);
    return twin.is_null() ? nullptr : tree_page(worker_.view().resolve(twin));
  }

  TreePage* child_of(InteriorPage* page, PageVersion version, uint64_t slice) const {
    DCHECK(is_sound(page, version));
    const uint32_t slot = page->find(slice, version.count());
    const VolatilePointer word = page->children[slot].load_acquire();
    // R3: load the word first, then the twins. A frozen word may be followed only while the page
    // has no successor.
    if (word.is_frozen()) {
      if (TreePage* twin = twin_of(page, slice); twin != nullptr) return twin;
    }
    return word.is_null() ? nullptr : tree_page(worker_.view().resolve(word.thawed()));
  }

  /// Copies the records of the page from the position on. At a next layer, sets `layer` and
  /// returns `below`. `at`: number of key bytes in the layers above.
  Step copy_records(CheckpointWriter& writer, BorderPage* page, PageVersion version, size_t at,
                    DualPointer*& layer) {
    std::array<uint16_t, kBorderSlotBound> order;
    const uint32_t count = order_slots(page, version, position().subspan(at), order);
    ++counters_.pages;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t slot = order[i];
      TreeRecord* record = page->record(slot);
      const Step step = visit_record(writer, page->slices()[slot], record, at);
      if (step == Step::below) layer = record->next_layer();
      if (step != Step::page) return step;
    }
    return leave_page(*page, at);
  }

  /// Writes the numbers of the slots that may hold the position or a later key to `order`, in key
  /// order. Returns their number.
  static uint32_t order_slots(BorderPage* page, PageVersion version, Bytes rest,
                              std::array<uint16_t, kBorderSlotBound>& order) {
    const uint64_t slice = slice_of(rest);
    const uint32_t length = length_class(static_cast<uint32_t>(rest.size()));
    const auto key_of = [page](uint16_t slot) {
      return std::pair(page->slices()[slot], length_class(page->record(slot)->head.remainder));
    };
    uint32_t count = 0;
    DCHECK(version.count() <= kBorderSlotBound);
    for (uint32_t slot = 0; slot < version.count(); ++slot) {
      const auto number = static_cast<uint16_t>(slot);
      if (key_of(number) >= std::pair(slice, length)) order[count++] = number;
    }
    if (!version.is_ascending()) {
      std::ranges::sort(order.begin(), order.begin() + count, {}, key_of);
    }
    return count;
  }

  /// Copies the record, or descends to its layer.
  Step visit_record(CheckpointWriter& writer, uint64_t slice, TreeRecord* record, size_t at) {
    const bool is_long = length_class(record->head.remainder) == 9;
    if (is_long && record->head.load_acquire().is_next_layer()) return enter_layer(slice, at);
    build_key(slice, record, at);
    const Bytes key = std::as_bytes(std::span(key_));
    if (compare_keys(key, position()) < 0) return Step::page;
    if (is_past_end(key)) return Step::end;
    LogRecord& copy = writer.begin_record(LogType::insert, id_, key, record->capacity);
    Vid seen;
    uint32_t bytes = 0;
    const Status status = read_stable(worker_, record->head, seen, [&](Vid) {
      bytes = std::min<uint32_t>(record->payload_bytes.load(std::memory_order_acquire),
                                 record->capacity);
      racy_read(copy.payload(), record->payload(), bytes);
    });
    if (status != Status::ok) return Step::failed;
    if (seen.is_relocated()) {
      // The next visit begins with this key, at its new place.
      position_ = key_;
      return Step::again;
    }
    CHECK(!seen.is_open());  // open records need a snapshot (R82)
    if (rules_.skips(seen)) return Step::page;
    writer.end_record(seen, bytes);
    ++counters_.records;
    return Step::page;
  }

  /// Moves the position into the layer below the slice, unless it is there already.
  Step enter_layer(uint64_t slice, size_t at) {
    const Bytes rest = position().subspan(at);
    if (rest.size() > 8 && slice_of(rest) == slice) return Step::below;
    DCHECK(slice_of(rest) <= slice);
    // The smallest key of a layer has one more byte than the slice.
    position_.resize(at + 9, '\0');
    put_slice(slice, reinterpret_cast<std::byte*>(position_.data() + at));
    position_[at + 8] = '\0';
    return is_past_end(position()) ? Step::end : Step::below;
  }

  void build_key(uint64_t slice, const TreeRecord* record, size_t at) {
    key_.assign(position_, 0, at);
    key_.resize(at + 8);
    put_slice(slice, reinterpret_cast<std::byte*>(key_.data() + at));
    if (record->head.remainder <= 8) {
      key_.resize(at + record->head.remainder);
    } else {
      // Suffixes never change, even if the record becomes a next layer.
      key_.append(reinterpret_cast<const char*>(record->suffix()), record->suffix_bytes());
    }
  }

  /// Moves the position to the first key after the page.
  Step leave_page(const TreePage& page, size_t at) {
    bool is_last = page.high_is_end();
    uint64_t next = page.high;
    while (is_last && at != 0) {
      // The layer ends. The walk continues after its slot in the layer above.
      at -= 8;
      const uint64_t slice = slice_of(position().subspan(at, 8));
      is_last = slice == UINT64_MAX;
      next = slice + 1;
    }
    if (is_last) return Step::end;
    position_.resize(at);
    position_ += smallest_key_of(next);
    return Step::page;
  }

  std::string position_;
  std::optional<std::string> high_;
  std::string key_;  // key of the record that is visited
};

}  // namespace

std::unique_ptr<RangeWalk> make_tree_walk(WorkerContext& worker, StorageControl& storage,
                                          const CheckpointRules& rules, const KeyRange& range) {
  CHECK(is_tree(storage.type));
  return std::make_unique<TreeRangeWalk>(worker, storage, rules, range);
}

}  // namespace atolldb
