// Consecutive records of a snapshot page, copied by a cursor. Snapshot pages never change, so a
// copy is valid for ever. The cursor reads it without the cache, and in no round (R39, R57).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/format/tree_page.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// Every byte has the place that it has in the page, so the copy is read like a page. Only the
/// header, and the slices, offsets and records of the copied slots, are valid.
class CopiedRecords {
 public:
  /// Returns whether the slot of this page is copied, apart from its payload.
  bool has(SnapshotPointer page, uint32_t slot) const {
    return page == name_ && slot - first_ < count_;
  }
  /// The page of which `has` is true.
  BorderPage* page() { return reinterpret_cast<BorderPage*>(bytes_.data()); }
  /// Returns a payload of this page, or null if it is not copied. `at`: its place in the page.
  const std::byte* payload(SnapshotPointer page, uint32_t at, uint32_t bytes) const {
    const bool is_copied = page == name_ && at >= begin_ && at + bytes <= end_;
    return is_copied ? bytes_.data() + at : nullptr;
  }

  /// Copies the slots [first, first + count), and forgets those before. Without `has_payloads` it
  /// copies one slot, with nothing of its record after the key except the pointer to a next layer.
  /// REQUIRES: the slots are in key order, and each record lies before that of the slot before it,
  /// as the composers write pages. The page is valid during the call (R39).
  void copy(BorderPage& from, SnapshotPointer name, uint32_t first, uint32_t count,
            bool has_payloads) {
    DCHECK(!name.is_null() && count != 0 && (has_payloads || count == 1));
    DCHECK(first + count <= from.slot_capacity() || fault::keep_scanned_pages);
    const auto* const source = reinterpret_cast<const std::byte*>(&from);
    if (name != name_) std::memcpy(bytes_.data(), source, sizeof(TreePage));
    name_ = name;
    first_ = first;
    count_ = count;
    std::memcpy(page()->slices() + first, from.slices() + first, count * sizeof(uint64_t));
    std::memcpy(page()->offsets() + first, from.offsets() + first, count * sizeof(uint16_t));
    const TreeRecord* const record = from.record(first);
    const uint32_t most =
        has_payloads ? record->bytes() : record->payload_at() + uint32_t{sizeof(DualPointer)};
    begin_ = from.offsets()[first + count - 1];
    end_ = from.offsets()[first] + std::min(most, record->bytes());
    DCHECK((begin_ >= from.heap_begin && begin_ < end_ && end_ <= kPageBytes) ||
           fault::keep_scanned_pages);
    end_ = std::min<uint32_t>(end_, kPageBytes);
    if (begin_ < end_) std::memcpy(bytes_.data() + begin_, source + begin_, end_ - begin_);
  }

 private:
  SnapshotPointer name_;  // null: nothing is copied
  uint32_t first_ = 0;    // copied slots: [first_, first_ + count_)
  uint32_t count_ = 0;
  uint32_t begin_ = 0;  // copied bytes of records: [begin_, end_)
  uint32_t end_ = 0;
  // Not initialised, because most scans copy no records.
  alignas(64) std::array<std::byte, kPageBytes> bytes_;
};

}  // namespace atolldb
