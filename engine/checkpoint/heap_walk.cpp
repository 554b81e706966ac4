#include <algorithm>
#include <cstring>

#include "engine/checkpoint/range_walk.h"
#include "engine/format/sequential_page.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Walks the lists of a heap, one after the other. The VIDs of a list ascend, so the walk leaves a
/// list at the first record that the log has (R90).
class HeapRangeWalk final : public RangeWalk {
 public:
  HeapRangeWalk(WorkerContext& worker, StorageControl& storage, const CheckpointRules& rules,
                const KeyRange& range)
      : RangeWalk(worker, storage, rules), next_list_(range.first), step_(range.end) {
    CHECK(step_ != 0 && next_list_ < step_);
  }

  Status copy_page(CheckpointWriter& writer, bool& is_at_end) override {
    is_at_end = !is_ready();
    if (is_at_end) return Status::ok;
    if (page_.is_null()) page_ = next_page_of_lists();
    is_at_end = page_.is_null();
    if (is_at_end) return Status::ok;
    auto* page = reinterpret_cast<SequentialPage*>(worker_.view().resolve(page_));
    ++counters_.pages;
    const bool has_more = copy(writer, *page);
    // Acquire pairs with the release of the worker that has linked the page.
    page_ =
        has_more ? VolatilePointer(page->next.load(std::memory_order_acquire)) : VolatilePointer();
    if (page_.is_null()) last_version_ = same_version_ = 0;
    return Status::ok;
  }

 private:
  static constexpr uint64_t kLists = uint64_t{SequentialDirectory::kEntries};

  PageHeader* follow(const std::atomic<uint64_t>& word) const {
    const VolatilePointer pointer(word.load(std::memory_order_acquire));
    return pointer.is_null() ? nullptr : worker_.view().resolve(pointer);
  }

  /// Returns the first page of the next list that has one, or null.
  VolatilePointer next_page_of_lists() {
    const uint32_t nodes = worker_.view().node_count;
    const auto* root = reinterpret_cast<SequentialDirectory*>(follow(storage_.root.volatile_word));
    if (root == nullptr) return {};
    for (; next_list_ < kLists * nodes;) {
      const uint64_t list = next_list_;
      next_list_ += step_;
      const auto* node =
          reinterpret_cast<SequentialDirectory*>(follow(root->entries[list % nodes]));
      if (node == nullptr) continue;
      const auto* head = reinterpret_cast<SequentialListHead*>(follow(node->entries[list / nodes]));
      if (head == nullptr) continue;
      CHECK(head->first_number.load(std::memory_order_relaxed) == 0);  // no page is in a snapshot
      const VolatilePointer first(head->first.load(std::memory_order_acquire));
      if (!first.is_null()) return first;
    }
    return {};
  }

  /// Copies the records of a page. Returns false at a record that the log has.
  bool copy(CheckpointWriter& writer, SequentialPage& page) {
    // The count is loaded once, with acquire. Records below it never change.
    const uint32_t count = page.header.version().count();
    uint32_t offset = 0;
    for (uint32_t i = 0; i < count; ++i) {
      auto* record = reinterpret_cast<SequentialRecord*>(page.data + offset);
      const Vid vid(record->vid);
      const auto bytes = static_cast<uint32_t>(record->payload_bytes);
      offset += SequentialRecord::bytes_for(bytes);
      DCHECK(offset <= SequentialPage::kDataBytes && vid.ordinal() != 0);
      if (vid.epoch() >= rules_.replay_epoch) {
        ++counters_.skipped;
        return false;
      }
      same_version_ = vid.version() == last_version_ ? same_version_ + 1 : 0;
      last_version_ = vid.version();
      LogRecord& target = writer.begin_record(LogType::append, id_, {}, bytes);
      target.payload_offset = static_cast<uint16_t>(std::min<uint64_t>(same_version_, UINT16_MAX));
      if (bytes != 0) std::memcpy(target.payload(), record->payload(), bytes);
      writer.end_record(vid, bytes);
      ++counters_.records;
    }
    return true;
  }

  uint64_t next_list_;  // number of the next list
  uint64_t step_;
  VolatilePointer page_;       // the next page; null: the next list follows
  uint64_t last_version_ = 0;  // of the previous record of the list
  /// Number of records before this one that have its version. The format has 16 bits. A list that
  /// a recovery has merged exceeds them only if a thousand workers had the same VID.
  uint64_t same_version_ = 0;
};

}  // namespace

std::unique_ptr<RangeWalk> make_heap_walk(WorkerContext& worker, StorageControl& storage,
                                          const CheckpointRules& rules, const KeyRange& range) {
  CHECK(storage.type == StorageType::sequential);
  return std::make_unique<HeapRangeWalk>(worker, storage, rules, range);
}

}  // namespace atolldb
