// The victims of a snapshot job, as the composer of one storage sees them (R68).
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/format/stand_in.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"

namespace atolldb {

/// Tells which pages of the base are copied, and which subtrees may hold such pages.
///
/// A page refers to pages of its own snapshot and of older ones only. So a subtree whose root is
/// older than the oldest victim holds no page of a victim.
/// REQUIRES: `plan` and `storage`, which is one of its storages, outlive this object.
class Victims {
 public:
  Victims(const SnapshotPlan& plan, const PlannedStorage& storage)
      : plan_(plan), storage_(storage) {
    CHECK(std::ranges::is_sorted(plan.victims));
    CHECK(!storage.has_victims || plan.salvages || !plan.victims.empty());
    CHECK(storage.has_victims || !storage.has_victims_below);
  }

  /// Returns whether the page lies in a file of a victim. In a salvage all pages of the base do.
  bool has(SnapshotPointer page) const {
    if (!storage_.has_victims || page.is_null()) return false;
    return plan_.salvages || std::ranges::binary_search(plan_.victims, page.snapshot());
  }

  /// Returns whether `page`, or a page to which it leads, may lie in a file of a victim.
  bool may_be_at_or_below(SnapshotPointer page) const {
    if (!storage_.has_victims || page.is_null()) return false;
    if (fault::prune_above_victims) return has(page);
    return plan_.salvages || page.snapshot() >= plan_.victims.front();
  }

  /// Does the same for a page whose level is known. A page of level 0 leads only to pages of next
  /// layers. Exception: a stand-in of level 0 may lead to any page.
  bool may_be_at_or_below(SnapshotPointer page, uint32_t level) const {
    if (!may_be_at_or_below(page)) return false;
    return level != 0 || has(page) || is_stand_in(page) || storage_.has_victims_below;
  }

  /// Does the same as may_be_at_or_below, for the root of a next layer.
  bool may_be_in_layer(SnapshotPointer root) const {
    return storage_.has_victims_below && may_be_at_or_below(root);
  }

 private:
  const SnapshotPlan& plan_;
  const PlannedStorage& storage_;
};

}  // namespace atolldb
