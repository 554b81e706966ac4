// Adoption: the parent of a moved page takes over its twins; roots grow. Source: [FOEDUS15] section
// 8.2.
#pragma once

#include "engine/mastertree/descent.h"

namespace atolldb {

/// Makes `link` lead to the successors of `page` and retires the page, if the needed locks are
/// free. Otherwise a later descent does it. Holds no lock on return. REQUIRES: `page` is moved, its
/// twins are set, `link` led to it, and the caller holds no lock.
void adopt(WorkerContext& worker, StorageControl& storage, const Link& link, TreePage* page);

/// Replaces an interior page by one or two sorted ones (R3). The page is moved on return; its own
/// parent adopts the successors later. REQUIRES: the page is locked and not moved, and the caller
/// has reserved two pages.
void rebuild_interior(WorkerContext& worker, InteriorPage* page);

}  // namespace atolldb
