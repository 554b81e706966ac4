#include "engine/gleaner/sample_victims.h"

#include <algorithm>

#include "engine/format/array_page.h"
#include "engine/format/stand_in.h"
#include "engine/format/tree_page.h"
#include "engine/gleaner/victims.h"
#include "shared/base/check.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

/// Returns the children of the storage's root that may lead to victims. A root without children has
/// none.
std::vector<SampledKey> children_with_victims(const SnapshotPlan& plan,
                                              const PlannedStorage& storage,
                                              const PageHeader& root) {
  const Victims victims(plan, storage);
  std::vector<SampledKey> children;
  const auto add = [&](const DualPointer& child, uint64_t key) {
    const SnapshotPointer page(child.snapshot_word.load(std::memory_order_relaxed));
    if (!victims.may_be_at_or_below(page)) return;
    // The node whose file has the page probably reads it fastest.
    const bool is_node = std::ranges::any_of(
        plan.reducers, [&](const ReducerPlace& place) { return place.node == page.node(); });
    const auto node = static_cast<uint16_t>(is_node ? page.node() : plan.reducers.front().node);
    children.push_back({storage.id, node, key});
  };
  if (root.type == PageType::array_interior) {
    const ArrayShape shape(storage.record_count, storage.payload_bytes);
    const auto& page = reinterpret_cast<const ArrayInterior&>(root);
    for (uint64_t i = 0; i < kArrayFanout; ++i) {
      add(page.children[i], i * shape.records_below_root_child());
    }
  } else if (root.type == PageType::mastertree_interior) {
    const auto& page = reinterpret_cast<const InteriorPage&>(root);
    const uint32_t count = std::min(root.version().count(), kInteriorCapacity);
    for (uint32_t i = 0; i < count; ++i) add(page.children[i], page.separators[i]);
    DCHECK(children.size() <= count);
  }
  return children;
}

}  // namespace

std::vector<SampledKey> sample_victims(const SnapshotFiles& base, const SnapshotPlan& plan,
                                       const std::map<uint32_t, uint64_t>& pages) {
  CHECK(!plan.reducers.empty());
  std::vector<SampledKey> sample;
  IoBuffer buffer(kPageBytes);
  for (const PlannedStorage& storage : plan.storages) {
    const auto found = pages.find(storage.id);
    if (found == pages.end() || storage.base_root.is_null()) continue;
    const auto* root = reinterpret_cast<PageHeader*>(buffer.bytes().data());
    const bool is_readable =
        !is_stand_in(storage.base_root) &&
        base.read(storage.base_root, reinterpret_cast<PageHeader*>(buffer.bytes().data()));
    if (!is_readable || root->storage_id != storage.id) continue;
    CHECK(storage.has_victims);
    const std::vector<SampledKey> children = children_with_victims(plan, storage, *root);
    if (children.empty()) continue;
    const uint64_t wanted = std::min(found->second, kMaxVictimSamples);
    const uint64_t each = std::max<uint64_t>(1, wanted / children.size());
    for (const SampledKey& child : children) sample.insert(sample.end(), each, child);
  }
  return sample;
}

}  // namespace atolldb
