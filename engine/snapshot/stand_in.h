// Pages of a snapshot that stand for ranges of a storage whose base page cannot be read (rule R56).
//
// A stand-in names the page that cannot be read, and leads to the log records of its range since
// then, the *held records*. Pointers to stand-ins have kStandInBit set: readers of
// pages treat them as unreadable, installers drop no volatile page onto them, and only composers
// look into them. Composers try the page again when its range has new log records, and in each
// rewrite. When they can read it, the held records are applied and the stand-in is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/log/log_record.h"
#include "engine/mastertree/key.h"
#include "engine/transaction/vid.h"
#include "shared/memory/page_header.h"
#include "shared/memory/pointer.h"

namespace atolldb {

/// In the number of a page: the page is a stand-in. No file has so many pages, so readers that do
/// not ask find none there.
inline constexpr uint32_t kStandInBit = uint32_t{1} << 31;

constexpr bool is_stand_in(SnapshotPointer pointer) { return (pointer.word() & kStandInBit) != 0; }
constexpr SnapshotPointer marked(SnapshotPointer page) {
  return SnapshotPointer(page.word() | kStandInBit);
}
/// The stand-in itself, which is a page of its file as others are; other pointers as they are.
constexpr SnapshotPointer unmarked(SnapshotPointer pointer) {
  return SnapshotPointer(pointer.word() & ~uint64_t{kStandInBit});
}

/// Types of pages that only snapshots have, after those of PageType.
inline constexpr PageType kStandInType{6};
inline constexpr PageType kHeldLogType{7};
static_assert(static_cast<int>(PageType::sequential) < static_cast<int>(kStandInType));

/// header.level and header.layer are those of the page that it stands for; level 0 if unknown.
struct StandInPage {
  PageHeader header;
  uint64_t lost;          // SnapshotPointer word of what cannot be read; it may be a stand-in, too
  uint64_t low;           // Master-tree: slices; array: numbers of records
  uint64_t high;          // the range ends there
  uint64_t high_is_end;   // Master-tree: 1: the range has no end
  uint64_t held;          // SnapshotPointer word of the last page of held records; 0: none
  uint64_t held_bytes;    // in that page and all before it
  uint64_t held_batches;  // snapshots that added some
};
static_assert(sizeof(StandInPage) <= kPageBytes);

/// Held records: log records one after the other, which go on from page to page. Each page leads to
/// the one before it.
struct HeldPage {
  static constexpr uint32_t kDataBytes = kPageBytes - sizeof(PageHeader) - 16;

  PageHeader header;
  uint64_t previous;  // SnapshotPointer word; 0: the first one
  uint64_t used_bytes;
  std::byte data[kDataBytes];
};
static_assert(sizeof(HeldPage) == kPageBytes);

/// What could not be read, as it is carried from snapshot to snapshot.
struct LostPage {
  SnapshotPointer lost;
  SnapshotPointer held;  // null: none
  uint64_t held_bytes = 0;
  uint64_t held_batches = 0;
};

/// After so many snapshots that added some, the held records are written anew without those that
/// later ones cover (R35). So they are bounded by the keys of the range.
inline constexpr uint64_t kMaxHeldBatches = 16;

/// An own copy of a log record.
struct HeldRecord {
  std::vector<uint64_t> words;

  const LogRecord& log() const { return *reinterpret_cast<const LogRecord*>(words.data()); }
  std::string_view key() const {
    return {reinterpret_cast<const char*>(log().key()), log().key_bytes};
  }
  uint64_t version() const { return Vid(log().vid).version(); }
};

/// What a composer tells of a page that it could not read.
struct UnreadablePage {
  uint32_t storage = 0;
  SnapshotPointer page;
  uint32_t level = 0;
  std::string range;  // of keys or records, for people
  std::string reason;
};

}  // namespace atolldb
