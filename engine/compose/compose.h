// Composers build the pages of a new snapshot from sorted log records and the pages of the base
// snapshot.
// Source: [FOEDUS15] section 7.3; rules R35, R36, R43.
//
// A composer writes only pages that change. The new snapshot refers to an unchanged subtree of the
// base by its pointer, and the composer does not read that subtree.
// Memory: a few pages per level of the storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include "engine/compose/shape_source.h"
#include "engine/format/stand_in.h"
#include "engine/gleaner/composed.h"
#include "engine/gleaner/glean_plan.h"
#include "engine/gleaner/log_source.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_writer.h"
#include "shared/base/error.h"

namespace atolldb {

/// The task of composing one partition of one storage. All that it refers to outlives the call.
struct ComposeTask {
  const GleanPlan& plan;
  size_t storage;      // index in plan.storages
  uint32_t partition;  // index in its partitions; sequential: the node
  LogSource& logs;     // log records of this storage and partition only
  const SnapshotFiles& base;
  SnapshotWriter& writer;  // of the node
  // Guards `writer`: held while a page, or a run of pages, is handed over.
  std::mutex& writer_mutex;
  std::function<bool()> cancelled = {};  // polled from time to time; empty: never cancelled
  /// Fence map of the volatile pages beside which the new pages will be installed. Null if the
  /// storage has no volatile pages, or if their ranges do not matter.
  ShapeSource* shapes = nullptr;
  /// Called for each page of the base that cannot be read. Thread: the composer's. May be empty.
  std::function<void(const UnreadablePage&)> on_unreadable = {};
};

/// Applies all log records and writes the pages of the partition. A page of the base that cannot be
/// read is no error: see GleanPlan::salvages and R56.
/// Errors: read and write errors; code failed after a cancellation; code corruption, with storage
/// and key, for impossible log records. These are records outside the partition, and updates of
/// records that do not exist.
/// Thread: any.
Result<ComposedPartition> compose(const ComposeTask& task);

}  // namespace atolldb
