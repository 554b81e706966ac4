// Distribution of storages to the nodes that install a snapshot.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/snapshot/snapshot_metadata.h"

namespace atolldb {

/// Returns the share of each node, by node. Storages are dealt out in turn, those with most records
/// first. A storage is never split. With many sockets, key ranges would be better, so that each
/// node installs in its own pages.
std::vector<std::vector<SnapshotStorage>> divide_storages(std::vector<SnapshotStorage> storages,
                                                          uint32_t node_count);

}  // namespace atolldb
