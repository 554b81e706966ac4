// Adoption (foedus.txt section 8.2): a moved page's parent takes over its twins; roots grow.
#pragma once

#include "engine/mastertree/descent.h"

namespace atolldb {

/// `page` is moved, its twins are set, and `link` led to it. Makes the link lead to the successors
/// and retires the page, if the locks needed are free; otherwise a later descent will. Holds no
/// lock afterwards. Call it with no lock held.
void adopt(WorkerContext& worker, StorageControl& storage, const Link& link, TreePage* page);

/// Replaces a locked, not moved interior page by one or two sorted ones (R3). The caller has
/// reserved two pages. Afterwards the page is moved; its own parent adopts the successors later.
void rebuild_interior(WorkerContext& worker, InteriorPage* page);

}  // namespace atolldb
