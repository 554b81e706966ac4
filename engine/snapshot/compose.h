// Composers: sorted log records and the pages of the base snapshot make the pages of the new one
// (foedus.txt section 7.3; rules R35, R36, R43).
//
// Only pages with changes are written; a subtree of the base without any is used as it is, by its
// pointer, and not even read. Memory: some pages per level of the storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include "engine/gleaner/composed.h"
#include "engine/gleaner/glean_plan.h"
#include "engine/gleaner/log_source.h"
#include "engine/snapshot/shape_source.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_writer.h"
#include "engine/snapshot/stand_in.h"
#include "shared/error.h"

namespace atolldb {

/// One partition of one storage. All that it refers to outlives the call.
struct ComposeTask {
  const GleanPlan& plan;
  size_t storage;      // index in plan.storages
  uint32_t partition;  // index in its partitions; sequential: the node
  LogSource& logs;     // of this storage and partition only
  const SnapshotFiles& base;
  SnapshotWriter& writer;    // of the node
  std::mutex& writer_mutex;  // held while a page, or a run of them, is handed to the writer
  std::function<bool()> cancelled = {};  // asked now and then; none: never
  /// Of the volatile pages beside which the new ones are to be installed; none: there are none, or
  /// it does not matter.
  ShapeSource* shapes = nullptr;
  /// Told of each page of the base that cannot be read, by the composer's thread; none: nobody.
  std::function<void(const UnreadablePage&)> on_unreadable = {};
};

/// Pages of the base that cannot be read do not fail it: see GleanPlan::salvages, and R56.
///
/// Applies all log records and writes the partition's pages. Errors: those of reading and writing;
/// code failed once it is cancelled; code corruption, with storage and key, for records that cannot
/// be: outside the partition, or an update of a record that is not there. Any thread.
Result<ComposedPartition> compose(const ComposeTask& task);

}  // namespace atolldb
