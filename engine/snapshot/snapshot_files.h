// The files of snapshots, and how a process reads pages from them (design: stratified snapshots;
// rule R37).
//
//   <directory>/node<k>/snapshot_<id>.atsnap     pages that node k composed
//   data_dir/coordinator/snapshot_<id>.atsnap    upper pages of partitioned storages (node 255)
//
// Page i of the file of (snapshot, node) is SnapshotPointer{snapshot, node, i}; page 0 is a header.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "engine/log/log_writer.h"
#include "shared/error.h"
#include "shared/file/file.h"
#include "shared/memory/page_header.h"
#include "shared/memory/pointer.h"

namespace atolldb {

inline constexpr uint32_t kSnapshotFileMagic = 0x4e534c41;  // "ALSN"
inline constexpr uint32_t kSnapshotFormatVersion = 1;

/// Page 0 of a snapshot file; zeros follow. Written last: a file without it is a leftover.
struct SnapshotFileHeader {
  uint32_t magic;
  uint32_t crc;  // CRC32C of the bytes behind it
  uint32_t version;
  uint32_t snapshot;
  uint8_t cluster_uuid[16];
  uint64_t epoch;        // of the snapshot
  uint64_t page_count;   // this one included
  uint32_t node;         // or kCoordinator
  uint32_t layout_hash;  // of the constants that page layouts depend on
};
static_assert(sizeof(SnapshotFileHeader) == 56);

/// "snapshot_12.atsnap"
std::string snapshot_file_name(uint32_t snapshot);
/// Where the file is: `directory` is data_dir for kCoordinator, else one of the node's.
std::string snapshot_file_path(const std::string& directory, uint32_t node, uint32_t snapshot);

/// Pages that one read gets where neighbours are wanted, too: past the page cache the trip to the
/// device costs about as much for one.
inline constexpr uint32_t kPagesPerRead = 16;

/// One file of a snapshot, as the metadata lists it.
struct SnapshotFilePlace {
  uint32_t snapshot = 0;
  uint32_t node = 0;      // or kCoordinator
  std::string directory;  // see snapshot_file_path
  uint64_t page_count = 0;

  bool operator==(const SnapshotFilePlace&) const = default;
};

/// The snapshot files that a process reads. Thread-safe. `file_system` outlives it.
class SnapshotFiles {
 public:
  SnapshotFiles(FileSystem& file_system, const ClusterUuid& cluster_uuid)
      : file_system_(&file_system), cluster_uuid_(cluster_uuid) {}
  SnapshotFiles(const SnapshotFiles&) = delete;
  SnapshotFiles& operator=(const SnapshotFiles&) = delete;

  /// Opens the files for reading; those that are open already stay. Checks each header and that the
  /// file has all its pages: code corruption names file and reason.
  Result<void> open(const std::vector<SnapshotFilePlace>& places);
  /// The same, but goes on after corruption: answers what is wrong with files that it left closed,
  /// whose pages cannot be read (R56).
  Result<std::vector<Error>> open_readable(const std::vector<SnapshotFilePlace>& places);
  /// As open, and closes all others. REQUIRES: nobody reads those (R38).
  Result<void> open_only(const std::vector<SnapshotFilePlace>& places);

  /// Reads a page into 4 KiB at `into`, aligned to kIoBlockBytes, and checks it: code corruption
  /// names file, page and reason. One read call; allocates nothing when all is well.
  Result<void> read(SnapshotPointer pointer, PageHeader* into) const;
  /// The same of `count` pages that follow each other in one file, with one call.
  Result<void> read_run(SnapshotPointer first, uint32_t count, std::byte* into) const;
  /// Reads `first` and those behind it, up to `most` and the end of the file, into memory aligned
  /// to kIoBlockBytes: how many are there and good, at least 1. When one is damaged, `first` alone;
  /// errors: as read().
  Result<uint32_t> read_ahead(SnapshotPointer first, uint32_t most, std::byte* into) const;
  /// Pages from there to the end of their file; 0 when it is not open.
  uint64_t pages_from(SnapshotPointer first) const;

 private:
  struct OpenFile {
    std::unique_ptr<File> file;
    uint64_t page_count = 0;
  };

  /// Null: it is not open. Good without the lock: an entry stays where it is until open_only
  /// removes it, when nobody reads the file.
  const OpenFile* find(SnapshotPointer page) const;
  /// Names the file and the page that a stand-in stands for (R56), or says why it cannot.
  Error error_of_stand_in(SnapshotPointer marked) const;

  FileSystem* file_system_;
  ClusterUuid cluster_uuid_;
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, OpenFile> files_;  // by the word of their page 0; guarded by mutex_
};

}  // namespace atolldb
