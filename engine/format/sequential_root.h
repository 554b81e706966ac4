// Root page of a sequential storage in a snapshot: lists the runs of pages that hold its records.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/base/pointer.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// Adjacent pages in one file.
struct SequentialRun {
  uint64_t first_page;  // SnapshotPointer word
  uint64_t pages;
  uint64_t first_epoch;
  uint64_t last_epoch;
  uint64_t records;
};
static_assert(sizeof(SequentialRun) == 40);

/// Page of type sequential and level 1. The pages form a chain, and the storage's root is the
/// newest. A full page never changes: a newer page is added that leads to it.
struct SequentialSnapshotRoot {
#ifdef ATOLL_STRESS
  static constexpr uint32_t kMaxRuns = 3;
#else
  static constexpr uint32_t kMaxRuns = 100;
#endif
  PageHeader header;
  uint64_t previous;          // SnapshotPointer word of the next older page; 0: none
  uint64_t previous_records;  // records in the runs of all older pages
  uint64_t count;             // number of `runs`, which are ordered by snapshot, then by node
  SequentialRun runs[kMaxRuns];
};
static_assert(sizeof(SequentialSnapshotRoot) <= kPageBytes);

}  // namespace atolldb
