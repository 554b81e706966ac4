// Drop policy of the installer: volatile pages are dropped only until enough pages are free. Hot
// pages are dropped last. See DropPolicy.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "engine/install/install.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/memory/cluster_view.h"

namespace atolldb {

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
  DropPolicy(const ClusterView& view, const DropLimits& limits) : view_(&view), limits_(limits) {
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
  std::deque<uint8_t>
      on_their_way_;  // nodes of the dropped pages that are not free yet, oldest first
  std::array<uint64_t, kMaxNodes + 1> on_their_way_count_{};  // number of these pages, by node
};

}  // namespace atolldb
