// Writes one node's file of one snapshot, page after page (design: stratified snapshots: all writes
// are sequential).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/log/byte_stream.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_page.h"

namespace atolldb {

struct SnapshotWriterSettings {
  std::string directory;  // see snapshot_file_path
  uint32_t node = 0;      // or kCoordinator
  uint32_t snapshot = 0;
  uint64_t epoch = 0;
  ClusterUuid cluster_uuid = {};
};

/// Used by one thread at a time: composers of one node take turns (a lock around each run of
/// pages).
class SnapshotWriter {
 public:
  /// Replaces what an earlier run that failed may have left under the same name. `file_system`
  /// outlives the writer.
  static Result<SnapshotWriter> create(FileSystem& file_system, SnapshotWriterSettings settings);
  ~SnapshotWriter();
  SnapshotWriter(SnapshotWriter&&) noexcept;
  SnapshotWriter& operator=(SnapshotWriter&&) noexcept;

  /// A new page of zeros with its header begun (begin_snapshot_page). The caller fills it in before
  /// the next call of any function; its check is computed here. Writes to the device now and then.
  /// Errors: those of the file system; code resources when the file has 2^31 pages.
  Result<PageHeader*> next(uint32_t storage_id);
  /// Pages so far, page 0 included.
  uint64_t page_count() const;
  /// Writes what is left, the header last, and syncs file and directory. No page written: makes
  /// no file, and page_count() is 1.
  Result<void> finish();
  /// Removes the file.
  void discard();

 private:
  struct State;
  explicit SnapshotWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace atolldb
