// The lock word of a page, whose place depends on the type of the page.
#pragma once

#include "engine/format/array_page.h"
#include "engine/format/tree_page.h"
#include "shared/memory/page_header.h"
#include "shared/sync/mcs_lock.h"

namespace atolldb {

/// Returns the lock of a page, or null if pages of its type have no lock.
inline const McsWord* lock_of(const PageHeader* page) {
  switch (page->type) {
    case PageType::array_leaf:
    case PageType::array_interior:
      return &reinterpret_cast<const ArrayPage*>(page)->lock;
    case PageType::mastertree_border:
    case PageType::mastertree_interior:
      return &reinterpret_cast<const TreePage*>(page)->lock;
    default:
      return nullptr;
  }
}

}  // namespace atolldb
