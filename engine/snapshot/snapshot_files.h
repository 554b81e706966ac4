// Names, headers and read access of snapshot files (R37).
//
//  <directory>/node<k>/snapshot_<id>.atsnap     pages that node k composed
//  data_dir/coordinator/snapshot_<id>.atsnap    upper pages of partitioned storages (node 255)
//
// Page i of the file of (snapshot, node) is SnapshotPointer{snapshot, node, i}. Page 0 is a header.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "engine/format/byte_stream.h"
#include "engine/log/log_writer.h"
#include "shared/base/error.h"
#include "shared/base/pointer.h"
#include "shared/file/file.h"
#include "shared/file/io_buffer.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// Returns the name of the file, for example "snapshot_12.atsnap".
std::string snapshot_file_name(uint32_t snapshot);
/// Returns the path of a snapshot file. `directory` is data_dir for kCoordinator, else a directory
/// of the node.
std::string snapshot_file_path(const std::string& directory, uint32_t node, uint32_t snapshot);

/// Number of pages per read if the adjacent pages are wanted, too. If a read bypasses the page
/// cache, it takes about as long for several pages as for one.
inline constexpr uint32_t kPagesPerRead = 16;

/// One file of a snapshot, as the metadata lists it.
struct SnapshotFilePlace {
  uint32_t snapshot = 0;
  uint32_t node = 0;      // number of a node, or kCoordinator
  std::string directory;  // data_dir for kCoordinator, else a directory of the node
  uint64_t page_count = 0;

  bool operator==(const SnapshotFilePlace&) const = default;
};

template <typename Archive>
void fields(Archive& archive, Described<Archive, SnapshotFilePlace>& file) {
  archive(file.snapshot, file.node, file.directory, file.page_count);
}

/// The snapshot files that a process reads. Thread-safe. `file_system` outlives the object.
class SnapshotFiles {
 public:
  SnapshotFiles(FileSystem& file_system, const ClusterUuid& cluster_uuid)
      : file_system_(&file_system), cluster_uuid_(cluster_uuid) {}
  SnapshotFiles(const SnapshotFiles&) = delete;
  SnapshotFiles& operator=(const SnapshotFiles&) = delete;

  /// Opens files for reading. Files that are already open stay open. Checks each header, and that
  /// the file has all its pages.
  /// Error: code corruption, which names file and reason.
  Result<void> open(const std::vector<SnapshotFilePlace>& places);
  /// Opens files and continues after corruption. Returns an error for each file that it left
  /// closed; the pages of these files cannot be read (R56).
  Result<std::vector<Error>> open_readable(const std::vector<SnapshotFilePlace>& places);
  /// Opens these files and closes all others. REQUIRES: no thread reads the others (R38).
  Result<void> open_only(const std::vector<SnapshotFilePlace>& places);

  /// Reads a page into 4 KiB at `into`, aligned to kIoBlockBytes, and checks it.
  /// Error: code corruption, which names file, page and reason. Makes one read call, and allocates
  /// no memory if it succeeds.
  Result<void> read(SnapshotPointer pointer, PageHeader* into) const;
  /// Reads and checks `count` adjacent pages of one file with one call.
  Result<void> read_run(SnapshotPointer first, uint32_t count, std::byte* into) const;
  /// Reads `first` and the pages after it, up to `most` pages and the end of the file, into memory
  /// aligned to kIoBlockBytes. If one of them is damaged, reads `first` alone. Returns the number
  /// of pages read. Errors: as for `read`.
  Result<uint32_t> read_ahead(SnapshotPointer first, uint32_t most, std::byte* into) const;
  struct Place {
    const File* file = nullptr;
    uint64_t offset = 0;
  };
  /// Returns where `count` adjacent pages are, for callers that read them by other means than this
  /// class. `file` is null if they are in no open file. Valid until `open_only`.
  Place place_of(SnapshotPointer first, uint32_t count) const;
  /// Returns whether `page`, read by such a caller, is the page `self` and is intact.
  static bool is_intact(const PageHeader& page, SnapshotPointer self);
  /// Returns the number of pages from `first` to the end of its file, or 0 if the file is not open.
  uint64_t pages_from(SnapshotPointer first) const;

 private:
  struct OpenFile {
    std::unique_ptr<File> file;
    uint64_t page_count = 0;
  };

  /// Returns the open file with this page, or null if it is not open. The result is valid without
  /// the lock: only open_only removes entries, and only when no thread reads their files.
  const OpenFile* find(SnapshotPointer page) const;
  /// Returns an error that names the unreadable page that a stand-in replaces, and its file (R56).
  /// If these cannot be found out, the error says why.
  Error error_of_stand_in(SnapshotPointer marked) const;

  FileSystem* file_system_;
  ClusterUuid cluster_uuid_;
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, OpenFile> files_;  // key: pointer word of page 0; guarded by mutex_
};

/// Reads pages of snapshots, and reads ahead. `files` outlives the reader.
/// Thread: one.
class PageReader {
 public:
  explicit PageReader(const SnapshotFiles& files) : files_(files) {}

  /// Reads a page like SnapshotFiles::read. If the page lies shortly after the last one, the reader
  /// also reads the pages that follow it.
  Result<void> read(SnapshotPointer pointer, PageHeader* into);

 private:
  const SnapshotFiles& files_;
  IoBuffer pages_{kPagesPerRead * kPageBytes};
  uint64_t first_ = 0;  // pointer word of the first page in `pages_`
  uint64_t count_ = 0;  // number of pages in `pages_`
  uint64_t last_ = 0;   // word of the page read last
};

}  // namespace atolldb
