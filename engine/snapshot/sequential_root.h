// The root of a sequential storage in a snapshot: where its pages lie.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/memory/page_header.h"
#include "shared/memory/pointer.h"

namespace atolldb {

/// Pages that follow each other in one file.
struct SequentialRun {
  uint64_t first_page;  // SnapshotPointer word
  uint64_t pages;
  uint64_t first_epoch;
  uint64_t last_epoch;
  uint64_t records;
};
static_assert(sizeof(SequentialRun) == 40);

/// Type sequential, level 1; the newest of a chain. A page that is full stays as it is, and a newer
/// one leads to it.
struct SequentialSnapshotRoot {
#ifdef ATOLL_STRESS
  static constexpr uint32_t kMaxRuns = 3;
#else
  static constexpr uint32_t kMaxRuns = 100;
#endif
  PageHeader header;
  uint64_t previous;          // SnapshotPointer word of the next older one; 0: none
  uint64_t previous_records;  // in the runs of all older ones
  uint64_t count;             // of `runs`, in the order of their snapshots, then of their nodes
  SequentialRun runs[kMaxRuns];
};
static_assert(sizeof(SequentialSnapshotRoot) <= kPageBytes);

}  // namespace atolldb
