// What one run of the gleaner is going to do: made by the coordinator, handed to every node
// (foedus.txt sections 7.1, 7.2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/log/log_reader.h"
#include "engine/snapshot/snapshot_files.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/pointer.h"

namespace atolldb {

/// A reducer: the owner of partitions.
struct ReducerPlace {
  uint16_t node = 0;
  uint16_t reducer = 0;  // within the node

  bool operator==(const ReducerPlace&) const = default;
};

/// Keys (in gleaned form) from `low` on, up to the next partition's, as is_before orders them.
struct GleanPartition {
  std::string low;  // array: 8 bytes; Master-tree: a slice of the first layer, 8 bytes big-endian,
                    // to which keys are compared by is_before;
                    // the first partition of a storage: empty
  ReducerPlace owner;

  bool operator==(const GleanPartition&) const = default;
};

struct GleanStorage {
  uint32_t id = 0;
  StorageType type = StorageType::none;
  uint32_t payload_bytes = 0;  // array: of a record
  uint64_t record_count = 0;   // array
  SnapshotPointer base_root;   // in the base snapshot; null: none, or empty
  /// Ascending, at least one. Sequential: empty, each mapper's records stay in its node (reducer
  /// 0).
  std::vector<GleanPartition> partitions;

  bool operator==(const GleanStorage&) const = default;
};

/// One logger's stream, to be read up to and with `last_epoch`, which is its cut or before.
struct GleanStream {
  LogStream stream;
  uint64_t last_epoch = 0;
};

/// What one mapper reads.
struct GleanMapper {
  uint16_t node = 0;
  uint16_t mapper = 0;  // within the node
  std::vector<GleanStream> streams;
};

struct GleanPlan {
  uint32_t snapshot = 0;
  uint32_t base = 0;        // 0: none
  uint64_t base_epoch = 0;  // records of this epoch and before are in the base already
  uint64_t epoch = 0;       // records of later epochs do not count
  /// No page of the base is used as it is: all are written anew, so that the files of older
  /// snapshots are not needed any more (R38). Every so often, so that their number is bounded.
  bool rewrites = false;
  /// What cannot be read of the base is left out: the new snapshot lacks it for good. Otherwise its
  /// ranges stay unreadable, and the log records of these ranges are held (R56). With `rewrites`.
  bool salvages = false;
  ClusterUuid cluster_uuid = {};
  std::vector<GleanStorage> storages;    // ascending ids; records of others do not count (dropped)
  std::vector<GleanMapper> mappers;      // of all nodes
  std::vector<ReducerPlace> reducers;    // of all nodes, ascending
  std::vector<SnapshotFilePlace> files;  // of the base, older ones included
};

}  // namespace atolldb
