// Installs a new snapshot beside the volatile pages of a running cluster and drops volatile pages
// that the snapshot makes redundant. Transactions continue meanwhile.
// Source: [FOEDUS15] section 7.5; rules R1-R3, R8, R9, R44.
//
// An installer walks the volatile pages of a storage. Beside every pointer it stores the snapshot
// page of exactly the same range, or null if the snapshot has no such page. In a Master-tree it
// reclaims the pages of deleted records on its way (R70). Then it drops, from the bottom up,
// volatile pages whose content equals that of the snapshot. It skips a page that it cannot lock at
// once, and leaves that page to the next snapshot. Other threads wait for an installer at most as
// long as its work on one page takes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/mastertree/build.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"
#include "shared/base/status.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// Answer of the drop policy for a volatile page that a snapshot page could replace.
enum class DropVerdict : uint8_t {
  drop,
  keep,      // enough pages are free
  keep_hot,  // the page was used often lately
};

/// Limits of one pass of an install. All installers of a pass have the same limits.
struct DropLimits {
  uint32_t free_percent = 100;  // drop until this share of each node's pool is free
  bool spares_hot = false;
  bool operator==(const DropLimits&) const = default;
};

struct InstallTask {
  SnapshotPointer root;     // root of the storage in the snapshot; null: the storage is empty there
  uint32_t snapshot = 0;    // id of the snapshot
  uint64_t epoch = 0;       // epoch of the snapshot
  uint64_t base_epoch = 0;  // epoch of the snapshot before it, for InstallReport::changed_bytes
  /// Called before each drop. May clear the page's reference bit.
  std::function<DropVerdict(PageHeader& page)> drop_policy;
  /// The part of the storage to install: slices of the first layer of a Master-tree, or record
  /// numbers of an array, whole children of its root. A sequential storage is installed with the
  /// part that begins at 0. The parts of a storage may be installed at the same time by several
  /// threads (R44).
  SliceRange part;
  /// Ascending slices of the first layer of a Master-tree where partitions of the next snapshot
  /// begin. A page with such a slice inside its range is not dropped (R85).
  std::span<const uint64_t> next_bounds;
  /// Time for which drains of the pass had waited for pages when this part began (R78).
  uint64_t waited_ms = 0;
  /// Polled every few pages. If it returns true, the remaining pages are left to the next snapshot.
  std::function<bool()> cancelled;
};

struct InstallReport {
  uint64_t installed = 0;  // pointers that now have a page of the snapshot beside them
  uint64_t unmatched = 0;  // volatile pages for whose range the snapshot has no page
  uint64_t dropped = 0;    // volatile pages that were dropped
  // The part of `dropped` that a second pass dropped. That pass spares no hot page.
  uint64_t dropped_hot = 0;
  uint64_t kept = 0;      // pages that the policy retained
  uint64_t kept_hot = 0;  // the part of `kept` that was retained because the page is hot
  uint64_t busy = 0;      // pages skipped because another thread held a lock
  /// Pages that were freed and are not in `dropped`: of deleted records (R70), and of delta trees.
  uint64_t reclaimed = 0;
  uint64_t waited_ms = 0;  // waits of drains for pages
  uint64_t drained = 0;    // records that were removed from delta trees (R78)
  /// Master-tree: memory of the records that have changed since the snapshot before: records in
  /// volatile pages, and records that were removed from delta trees.
  uint64_t changed_bytes = 0;
  uint64_t divided = 0;          // pointers that were added by dividing ranges (R80)
  uint64_t longest_hold_ns = 0;  // longest time for which the locks of one step were held
  /// Id of the oldest snapshot to which a pointer without a volatile page still leads. The files of
  /// that snapshot and of newer ones must be kept. kNoSnapshot: there is no such pointer.
  static constexpr uint32_t kNoSnapshot = ~uint32_t{0};
  uint32_t oldest_left = kNoSnapshot;
  /// True: some range cannot be read (R56), or was not visited.
  bool is_damaged = false;

  void add(const InstallReport& other);
};

/// The counters that an installer reports by name, and that `add` sums up. `add` treats each other
/// member of InstallReport in its own way.
struct InstallCounter {
  const char* name;
  uint64_t InstallReport::* value;
};
inline constexpr InstallCounter kInstallCounters[] = {
    {"installed", &InstallReport::installed}, {"unmatched", &InstallReport::unmatched},
    {"dropped", &InstallReport::dropped},     {"kept", &InstallReport::kept},
    {"kept_hot", &InstallReport::kept_hot},   {"busy", &InstallReport::busy},
    {"reclaimed", &InstallReport::reclaimed}, {"drained", &InstallReport::drained},
    {"divided", &InstallReport::divided},     {"changed_bytes", &InstallReport::changed_bytes},
};

/// Calls the drop policy and counts a page that it retains.
inline bool may_drop(const InstallTask& task, PageHeader& page, InstallReport& report) {
  DCHECK(page.is_snapshot == 0);
  const DropVerdict verdict = task.drop_policy(page);
  if (verdict == DropVerdict::drop) return true;
  ++report.kept;
  if (verdict == DropVerdict::keep_hot) ++report.kept_hot;
  return false;
}

/// Records that a cold pointer still leads to `page`, so the file of that page must be kept. Does
/// nothing if `page` is null.
inline void report_left(SnapshotPointer page, InstallReport& report) {
  if (!page.is_null()) report.oldest_left = std::min(report.oldest_left, page.snapshot());
}

/// Records its own lifetime as a lock-holding time. It is created before the locks are taken and
/// destroyed after they are released, so it reports at least the time that another thread waited.
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

/// Installs the snapshot in one storage. Returns ok at the end of the walk. Pointers below snapshot
/// pages that cannot be read stay unchanged (R56). Returns cluster_failed, or unavailable if
/// `cancelled` returned true. `report.oldest_left` is 0 if the walk did not end, or skipped a path
/// that other threads were changing.
/// REQUIRES: all nodes can read the files of the snapshot. No page was dropped since the composers
/// read the fence maps, because no job composes during an install (R84).
/// Thread: any thread of any node with its own page slot (R9). Threads may install disjoint parts
/// of a storage at the same time, in the same snapshot. The page slot is idle on return. Blocks
/// while it reads snapshot pages; it holds no lock then.
Status install_snapshot(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                        InstallReport& report);

/// Divides a storage into at most `parts` parts. Returns where all parts except the first begin,
/// ascending. The parts have about the same number of volatile pages, and at least `min_pages`. The
/// parts of an array consist of whole children of its root. A Master-tree may be divided anywhere,
/// so the bounds stay right when the tree changes.
/// REQUIRES: the calling thread has entered (WorkerContext::enter).
std::vector<uint64_t> divide_storage(WorkerContext& worker, StorageControl& storage, uint32_t parts,
                                     uint32_t min_pages);

/// Returns whether every pointer without a volatile page leads to the snapshot now. `parts`: sum of
/// the reports of all parts of a storage.
bool is_complete(const InstallReport& parts);

/// Removes the records that the snapshot contains from the pages of a delta tree that are in the
/// pool of the worker's node (R78). `task.part` is ignored. Errors and requirements: those of
/// `install_snapshot`. REQUIRES: the snapshot was installed in the storage, and the install
/// `is_complete`.
Status drain_delta(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                   InstallReport& report);

/// Drops the pages of a Master-tree that lie in several parts. `bounds`: where all parts except the
/// first begin. `task.part` is ignored. `parts`: sum of the reports of all parts. Errors and
/// requirements: those of `install_snapshot`. REQUIRES: all parts were installed.
Status install_seams(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                     std::span<const uint64_t> bounds, const InstallReport& parts,
                     InstallReport& report);

/// Begins a turn of an installer: publishes a new begin epoch. Pages found before the call must not
/// be used after it. Returns ok, cluster_failed, unavailable if `cancelled` returned true, or
/// storage_not_found if the storage with this id was dropped.
Status begin_turn(WorkerContext& worker, StorageControl& storage, uint32_t storage_id,
                  const InstallTask& task);

/// `install_snapshot` for one storage type.
Status install_array(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                     InstallReport& report);
Status install_mastertree(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                          InstallReport& report);
Status install_sequential(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                          InstallReport& report);

/// Frees the pages of a dropped storage (R34): unlinks the root and retires every page below it.
/// Returns the number of pages retired. REQUIRES: the storage was hidden before every current begin
/// epoch; the calling thread has entered (WorkerContext::enter).
uint64_t release_storage(WorkerContext& worker, StorageControl& storage);

}  // namespace atolldb
