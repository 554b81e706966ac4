// The plan of a gleaner run. The coordinator makes it and sends it to every node. Source:
// [FOEDUS15] sections 7.1, 7.2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/log/log_reader.h"
#include "engine/snapshot/snapshot_files.h"
#include "shared/base/pointer.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Identifies a reducer, which owns partitions.
struct ReducerPlace {
  uint16_t node = 0;
  uint16_t reducer = 0;  // within the node

  bool operator==(const ReducerPlace&) const = default;
};

/// A partition: keys (in gleaned form) from `low` on, up to the `low` of the next partition.
/// is_before defines the order.
struct GleanPartition {
  // Array: 8 bytes. Master-tree: a slice of the first layer, 8 bytes big-endian, compared with keys
  // by is_before. First partition of a storage: empty.
  std::string low;
  ReducerPlace owner;

  bool operator==(const GleanPartition&) const = default;
};

struct GleanStorage {
  uint32_t id = 0;
  StorageType type = StorageType::none;
  uint32_t payload_bytes = 0;  // array: bytes per record
  uint64_t record_count = 0;   // array
  SnapshotPointer base_root;   // root in the base snapshot; null: none, or empty
  /// Ascending, at least one. Sequential: empty, since each mapper sends its records to reducer 0
  /// of its own node.
  std::vector<GleanPartition> partitions;

  bool operator==(const GleanStorage&) const = default;
};

/// The stream of one logger, to be read up to `last_epoch` inclusive, which is its cut or earlier.
struct GleanStream {
  LogStream stream;
  uint64_t last_epoch = 0;
};

/// The input of one mapper.
struct GleanMapper {
  uint16_t node = 0;
  uint16_t mapper = 0;  // within the node
  std::vector<GleanStream> streams;
};

struct GleanPlan {
  uint32_t snapshot = 0;
  uint32_t base = 0;        // 0: none
  uint64_t base_epoch = 0;  // the base contains all records of this epoch and earlier ones
  uint64_t epoch = 0;       // records of later epochs are ignored
  /// The run writes every page and uses no page of the base. So files of older snapshots are
  /// not needed afterwards (R38). Rewrites take place from time to time and bound the number of
  /// files.
  bool rewrites = false;
  /// Data of the base that cannot be read is omitted: the new snapshot lacks it for good. Otherwise
  /// these ranges stay unreadable, and their log records are held (R56). Only together with
  /// `rewrites`.
  bool salvages = false;
  ClusterUuid cluster_uuid = {};
  // Ascending ids. Records of other storages are ignored, because these were dropped.
  std::vector<GleanStorage> storages;
  std::vector<GleanMapper> mappers;      // mappers of all nodes
  std::vector<ReducerPlace> reducers;    // reducers of all nodes, ascending
  std::vector<SnapshotFilePlace> files;  // files of the base, older ones included
};

}  // namespace atolldb
