// Special properties of snapshot pages (R36, R37, R43).
//
// A snapshot page has the layout of the volatile page for which it stands. So the same code reads
// both, and a copy-up copies the page:
// * header.self is its SnapshotPointer, is_snapshot is 1, locks are 0;
// * header.max_removed_vid is {epoch of its snapshot, ordinal 0}: a copy-up must inherit it (R43);
// * header.check is its checksum, see check_of;
// * records keep their VIDs, without flags except next_layer; none is deleted; slots ascend;
// * volatile words of its dual pointers are 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/format/crc32c.h"
#include "engine/format/vid.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// Returns the required value of a page's `check`. The upper 32 bits are the CRC32C of the bytes
/// before that field, the lower 32 bits that of the bytes after it.
inline uint64_t check_of(const PageHeader& page) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&page);
  constexpr size_t kAt = offsetof(PageHeader, check);
  constexpr size_t kAfter = kAt + sizeof(PageHeader::check);
  const uint64_t front = crc32c({bytes, kAt});
  return front << 32 | crc32c({bytes + kAfter, kPageBytes - kAfter});
}

/// Makes zeroed memory the snapshot page `self`. The caller sets type, layer, level and content.
inline void begin_snapshot_page(PageHeader& page, SnapshotPointer self, uint64_t epoch,
                                uint32_t storage_id) {
  CHECK(page.self == 0 && page.type == PageType::free && page.is_snapshot == 0);
  CHECK(!self.is_null() && self.snapshot() != 0);
  CHECK(epoch <= kMaxEpoch);
  page.self = self.word();
  page.is_snapshot = 1;
  page.storage_id = storage_id;
  page.max_removed_vid.store(Vid::make(epoch, 0).word(), std::memory_order_relaxed);
}

inline SnapshotPointer snapshot_self(const PageHeader& page) { return SnapshotPointer(page.self); }

}  // namespace atolldb
