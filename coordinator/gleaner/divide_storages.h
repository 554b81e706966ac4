// Which node installs a snapshot in which storages.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/snapshot/snapshot_metadata.h"

namespace atolldb {

/// By node: those with most records first, in turn. Whole storages: with many sockets, ranges of
/// their keys would be the next step, so that each node installs in its own pages.
std::vector<std::vector<SnapshotStorage>> divide_storages(std::vector<SnapshotStorage> storages,
                                                          uint32_t node_count);

}  // namespace atolldb
