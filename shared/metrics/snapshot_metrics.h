// What the coordinator has to say of snapshots, for its scrapes: local to its process. Writer: the
// thread that takes them, one at a time.
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/metrics/counter.h"

namespace atolldb {

struct SnapshotMetrics {
  Counter taken;   // by this incarnation, at its start included
  Counter failed;  // attempts
  std::atomic<bool> is_taking{false};
  std::atomic<uint64_t> duration_us{0};  // of the latest that was taken
  // Of the newest one, 0 when there is none.
  std::atomic<uint64_t> id{0};
  std::atomic<uint64_t> epoch{0};
  std::atomic<uint64_t> taken_at_s{0};     // since 1970; 0: by an earlier incarnation
  std::atomic<uint64_t> pages_written{0};  // for it; the others are of earlier snapshots
  std::atomic<uint64_t> files{0};          // that its pages lie in
  std::atomic<uint64_t> pages_stored{0};   // in these files
};

}  // namespace atolldb
