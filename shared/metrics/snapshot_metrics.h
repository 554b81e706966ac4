// Snapshot metrics of the coordinator, local to its process. Writer: the thread that takes
// snapshots, one at a time.
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/memory/histogram.h"

namespace atolldb {

struct SnapshotMetrics {
  Counter taken;   // by this incarnation, including at its start
  Counter failed;  // failed attempts
  std::atomic<bool> is_taking{false};
  std::atomic<uint64_t> duration_us{0};  // duration of the latest snapshot taken
  // Data of the newest snapshot; 0 without a snapshot.
  std::atomic<uint64_t> id{0};
  std::atomic<uint64_t> epoch{0};
  std::atomic<uint64_t> taken_at_s{0};  // seconds since 1970; 0: taken by an earlier incarnation
  std::atomic<uint64_t> pages_written{
      0};  // written for this snapshot; its other pages belong to earlier ones
  std::atomic<uint64_t> files{0};         // number of files that contain its pages
  std::atomic<uint64_t> pages_stored{0};  // pages in these files
};

}  // namespace atolldb
