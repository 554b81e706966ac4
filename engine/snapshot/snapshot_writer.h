// Writes one node's file of one snapshot, page after page. All writes are sequential, except for
// that of the header at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/format/byte_stream.h"
#include "engine/format/snapshot_page.h"
#include "engine/snapshot/snapshot_files.h"

namespace atolldb {

struct SnapshotWriterSettings {
  std::string directory;  // data_dir for kCoordinator, else a directory of the node
  uint32_t node = 0;      // number of a node, or kCoordinator
  uint32_t snapshot = 0;
  uint64_t epoch = 0;
  ClusterUuid cluster_uuid = {};
};

/// Writer of one snapshot file. Thread: one at a time. The composers of a node share the writer and
/// lock it per run of pages.
class SnapshotWriter {
 public:
  /// Creates a writer. Replaces a file of the same name, which a failed earlier job may have left.
  /// `file_system` outlives the writer.
  static Result<SnapshotWriter> create(FileSystem& file_system, SnapshotWriterSettings settings);
  ~SnapshotWriter();
  SnapshotWriter(SnapshotWriter&&) noexcept;
  SnapshotWriter& operator=(SnapshotWriter&&) noexcept;

  /// Returns a new page of zeros with an initialized header (begin_snapshot_page). The caller fills
  /// the page before the next call of any function; the writer computes its checksum later. Some
  /// calls write to the device.
  /// Errors: those of the file system; code resources when the file has 2^31 pages.
  Result<PageHeader*> next(uint32_t storage_id);
  /// Returns the number of pages so far, page 0 included.
  uint64_t page_count() const;
  /// Writes the remaining pages, then the header, and syncs file and directory. If no page was
  /// written, it creates no file, and page_count() is 1.
  Result<void> finish();
  /// Removes the file.
  void discard();

 private:
  struct State;
  explicit SnapshotWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace atolldb
