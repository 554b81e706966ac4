// Which volatile pages an installer may drop: only until enough are free, and hot ones last
// (design: stratified snapshots: hot pages and their ancestors stay, by policy and pool pressure).
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "engine/snapshot/install.h"
#include "shared/limits.h"
#include "shared/memory/cluster_view.h"

namespace atolldb {

/// One installer's, for one pass; its thread's. Installers of several nodes do not know of each
/// other: together they may drop a few pages too many, which only have to be read again.
///
/// CLOCK over the pages, with one revolution a snapshot: a page that was marked as hot since the
/// last one (WorkerContext::note_use) loses its mark and stays. Where that does not free enough,
/// the coordinator has a second pass made that spares none. Pages above one that stays stay anyway,
/// as they have a child. Those of heaps go in the order of appending, and are never marked.
class DropPolicy {
 public:
  DropPolicy(const ClusterView& view, const DropLimits& limits) : view_(&view), limits_(limits) {}

  /// One that may go counts as gone; a hot one that stays loses its mark. `retired`: pages that
  /// this installer has dropped and that are in nobody's hands yet.
  DropVerdict judge(PageHeader& page, uint64_t retired);

 private:
  void note_arrivals(uint64_t retired);
  bool is_short(uint32_t node) const;

  const ClusterView* view_;
  const DropLimits limits_;
  std::deque<uint8_t> on_their_way_;  // the nodes of pages that went, oldest first
  std::array<uint64_t, kMaxNodes + 1> on_their_way_count_{};  // of them, by node
};

}  // namespace atolldb
