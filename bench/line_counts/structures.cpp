#include "bench/line_counts/structures.h"

#include <cstddef>

#include "engine/format/tree_page.h"
#include "shared/memory/page_pool.h"

namespace atolldb::bench {

namespace {

/// A part of a structure: it begins at this offset, and ends where the next part begins.
struct Part {
  uint64_t begin;
  const char* name;
};

template <size_t kCount>
std::string part_at(const Part (&parts)[kCount], uint64_t offset) {
  const char* name = "";
  for (const Part& part : parts) {
    if (part.begin <= offset) name = part.name;
  }
  return name;
}

std::string in_control(const ControlSegment& control, uint64_t offset) {
  constexpr Part kParts[] = {
      {0, "header"},
      {offsetof(ControlSegment, state), "cluster state"},
      {offsetof(ControlSegment, heartbeat), "heartbeat"},
      {offsetof(ControlSegment, epochs) + offsetof(EpochBlock, current), "current epoch"},
      {offsetof(ControlSegment, epochs) + offsetof(EpochBlock, durable), "durable epoch"},
      {offsetof(ControlSegment, epochs) + offsetof(EpochBlock, oldest_begin), "oldest begin epoch"},
      {offsetof(ControlSegment, epochs) + offsetof(EpochBlock, oldest_begin) + 64, "other epochs"},
  };
  if (offset < offsetof(ControlSegment, storages)) return "control: " + part_at(kParts, offset);
  const uint64_t in_storages = offset - offsetof(ControlSegment, storages);
  const StorageControl& storage = control.storages[in_storages / sizeof(StorageControl)];
  const bool is_root =
      in_storages % sizeof(StorageControl) / 64 == offsetof(StorageControl, root) / 64;
  return std::string("control: ") + (is_root ? "root of " : "entry of ") + storage.name;
}

std::string in_node(const NodeShared& node, uint64_t offset) {
  constexpr Part kParts[] = {
      {0, "header"},
      {offsetof(NodeShared, pages_total), "gauges of the pool"},
      {offsetof(NodeShared, page_budget), "page budget"},
      {offsetof(NodeShared, dirty_epoch), "dirty epoch"},
      {offsetof(NodeShared, loggers), "loggers"},
  };
  if (offset < node.slots_offset) return "node: " + part_at(kParts, offset);
  if (offset < node.slots_offset + node.slot_count * sizeof(WorkerSlot)) {
    const uint64_t in_slot = (offset - node.slots_offset) % sizeof(WorkerSlot);
    return in_slot < offsetof(WorkerSlot, in_commit_epoch) ? "node: begin epoch of a worker"
                                                           : "node: in-commit epoch of a worker";
  }
  return offset < node.return_rings_offset ? "node: wait blocks of locks" : "node: return rings";
}

// The first cache line of a tree page has its version and its range.
static_assert(offsetof(TreePage, high) < 64 && offsetof(TreePage, lock) == 64);

std::string in_border(const BorderPage& page, uint64_t offset) {
  const uint64_t offsets = sizeof(TreePage) + page.slot_capacity() * sizeof(uint64_t);
  const Part parts[] = {
      {0, "version and range"},
      {offsetof(TreePage, lock), "lock, twins and guide"},
      {sizeof(TreePage), "slices"},
      {offsets, "slots"},
      {BorderPage::heap_limit(page.slot_capacity()), "records"},
  };
  return "border page, " + part_at(parts, offset);
}

std::string in_interior(uint64_t offset) {
  constexpr Part kParts[] = {
      {0, "version and range"},
      {offsetof(TreePage, lock), "lock and twins"},
      {sizeof(TreePage), "guide"},
      {sizeof(TreePage) + sizeof(InteriorPage::guide), "separators"},
      {sizeof(InteriorPage) - kInteriorCapacity * sizeof(DualPointer), "children"},
  };
  return "interior page, " + part_at(kParts, offset);
}

std::string in_page(const ControlSegment& control, const PageHeader& page, uint64_t offset) {
  const char* const storage = control.storages[page.storage_id % kMaxStorages].name;
  const auto named = [&](const std::string& what) { return std::string(storage) + ": " + what; };
  switch (page.type) {
    case PageType::free:
      break;
    case PageType::array_leaf:
      return named(offset < sizeof(PageHeader) ? "array leaf, header" : "array leaf, records");
    case PageType::array_interior:
      return named(offset < sizeof(PageHeader) ? "array interior, header" : "array interior");
    case PageType::mastertree_border:
      return named(in_border(reinterpret_cast<const BorderPage&>(page), offset));
    case PageType::mastertree_interior:
      return named(in_interior(offset));
    case PageType::sequential:
      return named(offset < sizeof(PageHeader) ? "sequential page, header" : "sequential page");
  }
  return "free pages";
}

}  // namespace

std::string structure_at(const ClusterView& view, const std::byte* line) {
  const auto offset_in = [&](const void* segment, uint64_t bytes) {
    const auto offset = reinterpret_cast<uintptr_t>(line) - reinterpret_cast<uintptr_t>(segment);
    return offset < bytes ? offset : ~uintptr_t{0};
  };
  const uint64_t in_control_at = offset_in(view.control, sizeof(ControlSegment));
  if (in_control_at != ~uint64_t{0}) return in_control(*view.control, in_control_at);
  for (uint32_t node = 0; node < view.node_count; ++node) {
    const NodeShared& shared = *view.shared[node];
    const uint64_t end = shared.return_rings_offset + view.node_count * sizeof(ReturnRing);
    const uint64_t in_shared = offset_in(&shared, end);
    if (in_shared != ~uint64_t{0}) return in_node(shared, in_shared);
    const auto* pool = reinterpret_cast<const PoolControl*>(view.pool[node]);
    const uint64_t in_pool = offset_in(pool, pool->page_count * kPageBytes);
    if (in_pool == ~uint64_t{0}) continue;
    if (in_pool < pool->first_page * kPageBytes) {
      return in_pool < sizeof(PoolControl) ? "pool: lock and counts" : "pool: free stack";
    }
    return in_page(*view.control, *page_of(line), in_pool % kPageBytes);
  }
  return "unknown";
}

}  // namespace atolldb::bench
