// Pages of a sequential storage (R17).
//
//   storage root -> directory page (a word per node) -> directory page of a node (a word per
//   worker) -> list head page of a worker -> its data pages, oldest first
//
// Each list has one writer, its worker. The list's version word is odd while a commit appends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/format/log_record.h"
#include "engine/format/vid.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// Directory page. A page of level 2 is the root, and a page of level 1 belongs to one node. Each
/// entry changes once, from null, by compare-and-swap.
struct SequentialDirectory {
  static constexpr uint32_t kEntries = 256;
  PageHeader header;
  std::atomic<uint64_t> entries[kEntries];  // VolatilePointer words
};
static_assert(sizeof(SequentialDirectory) <= kPageBytes);

/// Head of a worker's list. Writer: the list's worker. Once the list has two pages, the snapshot
/// installer writes `first`. Readers: scans and their verification.
struct SequentialListHead {
  PageHeader header;
  alignas(64) std::atomic<uint64_t> version;  // odd: an append is in progress
  std::atomic<uint64_t> first;                // VolatilePointer word of the oldest data page
  uint64_t last;  // VolatilePointer word of the newest page; private to the worker
  /// At least the number of the page that `first` leads to. A scan loads `first` (acquire), then
  /// this word. If the number of the page is larger than this word, the list has a gap. If it is
  /// not, all pages before that page were dropped. Writer: the installer, before it stores `first`.
  std::atomic<uint64_t> first_number;
};
static_assert(sizeof(SequentialListHead) <= kPageBytes);

/// Record: VID and payload length, then the payload, padded to 8 bytes.
struct SequentialRecord {
  uint64_t vid;
  uint64_t payload_bytes;

  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
  static constexpr uint32_t bytes_for(uint32_t payload_bytes) {
    return static_cast<uint32_t>(sizeof(SequentialRecord)) + align8(payload_bytes);
  }
};

/// Data page of a list, filled from the front. The header's version word counts the records.
struct SequentialPage {
  static constexpr uint32_t kDataBytes =
      static_cast<uint32_t>(kPageBytes - sizeof(PageHeader)) - 24;

  PageHeader header;
  std::atomic<uint64_t> next;  // VolatilePointer word of the next data page
  uint64_t number;             // 0, 1, 2 ... in the list: a gap means a page is missing
  uint64_t used_bytes;         // private to the worker
  std::byte data[kDataBytes];

#ifdef ATOLL_STRESS
  static constexpr uint32_t kMaxRecords = 3;
#else
  static constexpr uint32_t kMaxRecords = 0xffff;
#endif
  bool has_room(uint32_t record_bytes) const {
    DCHECK(used_bytes <= kDataBytes && used_bytes % 8 == 0);
    return used_bytes + record_bytes <= kDataBytes && header.version().count() < kMaxRecords;
  }
};
static_assert(sizeof(SequentialPage) == kPageBytes);

/// A run: adjacent pages in one snapshot file. The epochs of their records ascend (R69).
struct SequentialRun {
  uint64_t first_page;  // SnapshotPointer word of the first page
  uint64_t pages;
  uint64_t first_epoch;
  uint64_t last_epoch;
  uint64_t records;

  /// Returns whether the run has pages, and all their page numbers fit in 32 bits.
  bool is_sound() const {
    const SnapshotPointer first(first_page);
    return !first.is_null() && pages != 0 && pages <= UINT32_MAX - first.page() + uint64_t{1};
  }
  /// Returns whether the run is one page that a composer could not read, and that may be readable
  /// again (R56). The epochs are those of the run that had the page before.
  bool is_lost() const { return pages == 1 && records == 0; }
};
static_assert(sizeof(SequentialRun) == 40);

/// Root page in a snapshot: type sequential, level 1. Root pages form a chain; the storage's root
/// is the newest. A snapshot rewrites the root page that lists the oldest replaced run, and all
/// newer root pages.
struct SequentialSnapshotRoot {
#ifdef ATOLL_STRESS
  static constexpr uint32_t kMaxRuns = 3;
#else
  static constexpr uint32_t kMaxRuns = 100;
#endif
  PageHeader header;
  uint64_t previous;          // SnapshotPointer word of the next older page; 0: none
  uint64_t previous_records;  // records in the runs of all older pages
  uint64_t count;             // used entries of `runs`; those of one node are in order of epochs
  SequentialRun runs[kMaxRuns];

  /// Returns whether this page, read at `at`, can be a root page. Each reader of a chain checks
  /// this before it uses `runs` or `previous`. The older page must have been written before this
  /// one, so a chain has no cycle.
  bool is_sound(SnapshotPointer at) const {
    if (header.type != PageType::sequential || header.level != 1 || count > kMaxRuns) return false;
    for (uint64_t i = 0; i < count; ++i) {
      if (!runs[i].is_sound()) return false;
    }
    const SnapshotPointer older(previous);
    if (older.is_null()) return true;
    return older.snapshot() < at.snapshot() ||
           (older.snapshot() == at.snapshot() && older.page() < at.page());
  }
};
static_assert(sizeof(SequentialSnapshotRoot) <= kPageBytes);

}  // namespace atolldb
