// Installing a snapshot in the volatile pages of a running cluster, and dropping those that it
// makes unnecessary, while transactions go on (foedus.txt section 5; rules R1-R3, R8, R9, R44).
//
// An installer walks the volatile pages of a storage. Beside every pointer it stores the
// snapshot's page of the very same range, or null where there is none and the volatile page stands
// alone. Then it drops volatile pages, from the bottom up, whose content is the snapshot's.
// Whatever it meets locked it leaves for the next snapshot: nobody waits for it longer than for
// one page.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

#include "engine/transaction/worker_context.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/page_header.h"
#include "shared/memory/pointer.h"
#include "shared/status.h"

namespace atolldb {

/// What a policy says of a volatile page that the snapshot's could stand for.
enum class DropVerdict : uint8_t {
  drop,
  keep,      // pages enough are free
  keep_hot,  // it was used often lately
};

/// How far pages are to go; of all installers of a pass the same.
struct DropLimits {
  uint32_t free_percent = 100;  // of each node's pool
  bool spares_hot = false;
  bool operator==(const DropLimits&) const = default;
};

struct InstallTask {
  SnapshotPointer root;   // of the storage in the snapshot; null: it has no records there
  uint32_t snapshot = 0;  // its id
  uint64_t epoch = 0;     // its epoch
  /// Asked before each drop; may take the page's mark away.
  std::function<DropVerdict(PageHeader& page)> drop_policy;
  /// Asked every few pages; the rest is left to the next snapshot.
  std::function<bool()> cancelled;
};

struct InstallReport {
  uint64_t installed = 0;        // pointers with a page of the snapshot beside them now
  uint64_t unmatched = 0;        // volatile pages for whose range the snapshot has no page
  uint64_t dropped = 0;          // volatile pages
  uint64_t dropped_hot = 0;      // of these: in a second pass, which spares none
  uint64_t kept = 0;             // that might have been dropped, but for the policy
  uint64_t kept_hot = 0;         // of these: as they are hot
  uint64_t busy = 0;             // what was left since somebody else held a lock
  uint64_t longest_hold_ns = 0;  // of locks, all those of one step together
  /// Pointers without a volatile page that still lead to an older snapshot, whose files must stay:
  /// the oldest one's id; kNoSnapshot: there are none.
  static constexpr uint32_t kNoSnapshot = ~uint32_t{0};
  uint32_t oldest_left = kNoSnapshot;

  void add(const InstallReport& other);
};

/// Asks the policy, and counts a page that stays.
inline bool may_drop(const InstallTask& task, PageHeader& page, InstallReport& report) {
  const DropVerdict verdict = task.drop_policy(page);
  if (verdict == DropVerdict::drop) return true;
  ++report.kept;
  if (verdict == DropVerdict::keep_hot) ++report.kept_hot;
  return false;
}

/// Notes for how long its life was: made before locks are taken, gone after they are released, so
/// more than what anybody has waited for.
class HoldTimer {
 public:
  using Clock = std::chrono::steady_clock;

  explicit HoldTimer(InstallReport& report) : report_(report), begin_(Clock::now()) {}
  HoldTimer(const HoldTimer&) = delete;
  HoldTimer& operator=(const HoldTimer&) = delete;
  ~HoldTimer() {
    const auto held = std::chrono::nanoseconds(Clock::now() - begin_).count();
    report_.longest_hold_ns = std::max(report_.longest_hold_ns, static_cast<uint64_t>(held));
  }

 private:
  InstallReport& report_;
  Clock::time_point begin_;
};

/// Of one storage; one thread per storage at a time, of any node, with a page slot of its own
/// (R9), which is idle again on return. REQUIRES: the files of the snapshot can be read on all
/// nodes; no page was dropped since its composers looked at the volatile pages (runs of the gleaner
/// follow each other). ok: all pointers were looked at, those below pages of the snapshot that
/// cannot be read stay as they are (R56); cluster_failed, or unavailable (`cancelled` said so):
/// some were not, and `report.oldest_left` is 0. Blocks for reads of snapshot pages, with no lock
/// held.
Status install_snapshot(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                        InstallReport& report);

}  // namespace atolldb
