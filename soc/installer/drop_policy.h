// Drop policy of the installer: volatile pages are dropped only until enough pages are free. Hot
// pages are dropped last. See DropPolicy.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>

#include "engine/install/install.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/memory/cluster_view.h"

namespace atolldb {

/// Counts the pages that the installers of one node have dropped in one pass and that are not free
/// yet. There is one count for each node that owns such pages. Thread-safe.
struct DropsOnTheirWay {
  // All accesses are relaxed, because the numbers are estimates.
  std::array<std::atomic<uint64_t>, kMaxNodes + 1> count{};
};

/// Decides which pages one installer drops in one pass. Thread: the installer's. The installers of
/// several nodes do not coordinate. Together they may drop a few pages too many, which only have to
/// be read again.
///
/// The policy is CLOCK over the pages, with one revolution per snapshot. A page whose reference bit
/// (PageHeader::reference_bit) was set since the last revolution loses the bit and is retained
/// (WorkerContext::count_use sets it). If this frees too few pages, the coordinator starts a second
/// pass that spares no page. The ancestors of a retained page are also retained, because they have
/// a volatile child. Pages of sequential storages are dropped in the order of appending, and never
/// have the bit.
class DropPolicy {
 public:
  /// `dropped`: shared by the installers of the node. REQUIRES: it outlives the policy.
  DropPolicy(const ClusterView& view, const DropLimits& limits, DropsOnTheirWay& dropped)
      : view_(&view), limits_(limits), dropped_(&dropped) {
    CHECK(limits.free_percent <= 100);
  }

  /// Decides about one page. A page to drop counts as free from then on; a hot page that is
  /// retained loses its reference bit. `retired`: pages that this installer has dropped and that
  /// are not free yet.
  DropVerdict judge(PageHeader& page, uint64_t retired);

 private:
  void count_arrivals(uint64_t retired);
  bool is_short(uint32_t node) const;

  const ClusterView* view_;
  const DropLimits limits_;
  DropsOnTheirWay* dropped_;
  // Nodes of the pages that this installer dropped and that are not free yet, oldest first.
  std::deque<uint8_t> on_their_way_;
};

}  // namespace atolldb
