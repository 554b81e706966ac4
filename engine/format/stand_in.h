// Stand-in pages: they replace pages of a snapshot that cannot be read (R56).
//
// A stand-in names the page that cannot be read. It leads to the *held records*: the log records of
// its range that are newer than the content of that page. Pointers to stand-ins have kStandInBit
// set. Transactions treat stand-ins as unreadable pages, and installers drop no volatile page onto
// them. Only composers read their content. A composer tries to read the original page again when
// its range has new log records, and when it may lead to a victim. If that succeeds, the composer
// applies the held records and removes the stand-in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/format/log_record.h"
#include "engine/format/tree_key.h"
#include "engine/format/vid.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// Bit of the page number that marks a stand-in. No file has so many pages, so a reader that does
/// not check the bit finds no page there.
inline constexpr uint32_t kStandInBit = uint32_t{1} << 31;

constexpr bool is_stand_in(SnapshotPointer pointer) { return (pointer.word() & kStandInBit) != 0; }
constexpr SnapshotPointer marked(SnapshotPointer page) {
  DCHECK(!page.is_null() && !is_stand_in(page));
  return SnapshotPointer(page.word() | kStandInBit);
}
/// Removes kStandInBit. The result is the address of the stand-in page itself, which is an ordinary
/// page of its file. Returns other pointers unchanged.
constexpr SnapshotPointer unmarked(SnapshotPointer pointer) {
  return SnapshotPointer(pointer.word() & ~uint64_t{kStandInBit});
}

/// Types of pages that occur only in snapshots. Their numbers follow those of PageType.
inline constexpr PageType kStandInType{6};
inline constexpr PageType kHeldLogType{7};
static_assert(static_cast<int>(kLastPageType) < static_cast<int>(kStandInType));

/// A stand-in. header.level and header.layer are those of the page for which it stands. The level
/// is 0 if it is unknown.
struct StandInPage {
  PageHeader header;
  // SnapshotPointer word of the unreadable page, which may be a stand-in, too.
  uint64_t lost;
  uint64_t low;           // range: slices in a Master-tree, record numbers in an array
  uint64_t high;          // end of the range, exclusive
  uint64_t high_is_end;   // Master-tree: 1 if the range has no end
  uint64_t held;          // SnapshotPointer word of the last page of held records; 0: none
  uint64_t held_bytes;    // bytes of held records in that page and in all pages before it
  uint64_t held_batches;  // number of snapshots that added held records
};
static_assert(sizeof(StandInPage) <= kPageBytes);

/// A page of held records. The log records lie one after the other and may continue on the next
/// page. Each page leads to the one before it.
struct HeldPage {
  static constexpr uint32_t kDataBytes = kPageBytes - sizeof(PageHeader) - 16;

  PageHeader header;
  uint64_t previous;  // SnapshotPointer word of the page before this one; 0: none
  uint64_t used_bytes;
  std::byte data[kDataBytes];
};
static_assert(sizeof(HeldPage) == kPageBytes);

/// A page that could not be read, as its stand-in records it. A composer copies this to the
/// stand-in of the next snapshot.
struct LostPage {
  SnapshotPointer lost;
  SnapshotPointer held;  // last page of held records; null: none
  uint64_t held_bytes = 0;
  uint64_t held_batches = 0;
};

/// After this number of snapshots that added held records, a composer rewrites the held records. It
/// elides held records that later ones cover (R35). So the number of keys in the range limits the
/// size of the held records.
inline constexpr uint64_t kMaxHeldBatches = 16;

/// A private copy of a log record.
struct HeldRecord {
  std::vector<uint64_t> words;

  const LogRecord& log() const {
    DCHECK(words.size() * sizeof(uint64_t) >= sizeof(LogRecord));
    return *reinterpret_cast<const LogRecord*>(words.data());
  }
  std::string_view key() const {
    DCHECK(sizeof(LogRecord) + log().key_bytes <= words.size() * sizeof(uint64_t));
    return {reinterpret_cast<const char*>(log().key()), log().key_bytes};
  }
  uint64_t version() const { return Vid(log().vid).version(); }
};

/// A composer's report about a page that it could not read.
struct UnreadablePage {
  uint32_t storage = 0;
  SnapshotPointer page;
  uint32_t level = 0;
  std::string range;  // human-readable: keys, or numbers of records
  std::string reason;
};

}  // namespace atolldb
