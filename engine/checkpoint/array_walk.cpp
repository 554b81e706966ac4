#include <algorithm>
#include <array>
#include <cstring>

#include "engine/checkpoint/range_walk.h"
#include "engine/format/array_page.h"
#include "engine/transaction/optimistic_read.h"
#include "shared/base/check.h"
#include "shared/sync/racy_copy.h"

namespace atolldb {
namespace {

class ArrayRangeWalk final : public RangeWalk {
 public:
  ArrayRangeWalk(WorkerContext& worker, StorageControl& storage, const CheckpointRules& rules,
                 const KeyRange& range)
      : RangeWalk(worker, storage, rules),
        shape_(storage.record_count, storage.payload_bytes),
        next_(range.first),
        end_(range.end) {
    CHECK(next_ <= end_ && end_ <= shape_.record_count);
  }

  Status copy_page(CheckpointWriter& writer, bool& is_at_end) override {
    is_at_end = next_ >= end_ || !is_ready();
    if (is_at_end) return Status::ok;
    uint64_t after = 0;
    ArrayLeaf* leaf = find_leaf(after);
    const uint64_t last = std::min(after, end_);
    if (leaf != nullptr) ++counters_.pages;
    for (uint64_t index = next_; leaf != nullptr && index < last; ++index) {
      const uint64_t slot = index % shape_.records_per_leaf;
      const Status status = copy(writer, index, *leaf->record(slot, shape_.record_bytes));
      if (status != Status::ok) return status;
    }
    next_ = last;
    is_at_end = next_ >= end_;
    return Status::ok;
  }

 private:
  /// Returns the leaf of the next record, or null if the leaf or a page above it is missing. No
  /// record of a missing page was ever written. `after`: the first record after the range of the
  /// page that was found to be missing, or after the leaf.
  ArrayLeaf* find_leaf(uint64_t& after) const {
    const DualPointer* pointer = &storage_.root;
    for (uint32_t level = shape_.levels - 1;; --level) {
      const uint64_t below = shape_.records_below(level);
      after = (next_ / below + 1) * below;
      const VolatilePointer word = pointer->load_acquire();
      if (word.is_null()) {
        // Relaxed: installers of snapshots, the only writers, do not run with checkpoints.
        CHECK(pointer->snapshot_word.load(std::memory_order_relaxed) == 0);
        return nullptr;
      }
      PageHeader* page = worker_.view().resolve(word.thawed());
      DCHECK(page->level == level && page->storage_id == id_);
      if (level == 0) return reinterpret_cast<ArrayLeaf*>(page);
      const uint64_t child = next_ / shape_.records_below(level - 1) % kArrayFanout;
      pointer = &reinterpret_cast<ArrayInterior*>(page)->children[child];
    }
  }

  Status copy(CheckpointWriter& writer, uint64_t index, const RecordHead& record) {
    Vid seen = record.load_acquire();
    if (seen.ordinal() == 0 && !seen.is_being_written()) return Status::ok;  // never written
    std::array<std::byte, sizeof index> key;
    std::memcpy(key.data(), &index, sizeof index);
    LogRecord& target = writer.begin_record(LogType::insert, id_, key, shape_.payload_bytes);
    const Status status = read_stable(worker_, record, seen, [&](Vid) {
      racy_read(target.payload(), &record + 1, shape_.payload_bytes);
    });
    if (status != Status::ok) return status;
    CHECK(!seen.is_relocated());  // pages of arrays are moved by installers of snapshots only
    if (rules_.skips(seen)) return Status::ok;
    writer.end_record(seen, shape_.payload_bytes);
    ++counters_.records;
    return Status::ok;
  }

  ArrayShape shape_;
  uint64_t next_;  // number of the first record that was not visited
  uint64_t end_;
};

}  // namespace

std::unique_ptr<RangeWalk> make_array_walk(WorkerContext& worker, StorageControl& storage,
                                           const CheckpointRules& rules, const KeyRange& range) {
  CHECK(storage.type == StorageType::array);
  return std::make_unique<ArrayRangeWalk>(worker, storage, rules, range);
}

}  // namespace atolldb
