// Addresses of the cluster's segments in this process. They differ from process to process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/pointer.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/page_header.h"
#include "shared/sync/mcs_lock.h"

namespace atolldb {

struct ClusterView {
  ControlSegment* control = nullptr;
  uint32_t node_count = 0;
  std::array<NodeShared*, kMaxNodes + 1> shared{};
  std::array<std::byte*, kMaxNodes + 1> pool{};  // start of the pool segment; page 0 is its header
  LockSpace lock_space;

  void add_node(uint32_t node, NodeShared& node_shared, std::byte* pool_base) {
    CHECK(node < kMaxNodes && pool_base != nullptr);
    CHECK(node_shared.slot_count == node_shared.worker_count + kAuxiliarySlots);
    shared[node] = &node_shared;
    pool[node] = pool_base;
    lock_space.set_node(node, node_shared.wait_blocks(), node_shared.slot_count);
    if (node >= node_count) node_count = node + 1;
  }

  /// Returns the page's address in this process. REQUIRES: `pointer` is not null.
  PageHeader* resolve(VolatilePointer pointer) const {
    DCHECK(!pointer.is_null() && pointer.node() < node_count);
    auto* page = reinterpret_cast<PageHeader*>(pool[pointer.node()] +
                                               uint64_t{pointer.index()} * kPageBytes);
    DCHECK(page->self == pointer.thawed().word());
    return page;
  }
  /// Returns the address of the word that a universal name stands for.
  std::byte* resolve(UniversalName name) const {
    DCHECK(name.node() < node_count);
    return pool[name.node()] + name.pool_offset();
  }
};

}  // namespace atolldb
