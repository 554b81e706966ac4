// The file in which a node notes the names of the snapshot pages in its cache. The next start reads
// these pages again.
//
//   <directory>/node<k>/cached_pages
//
//    0 [ magic 8 ][ CRC32C 4, of all that follows ][ node 4 ]
//   16 [ UUID of the data 16 ]
//   32 [ newest snapshot 4 ][ spare 4 ][ number of names 8 ]
//   48 [ spare 16 ]
//   64 [ name of a page 8 ] ...                padded with zeros to kIoBlockBytes
//
// The file is only a hint. It is not synced, and a start ignores it if it is damaged. A page that
// it names may be replaced, or its file may be deleted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/log/log_writer.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// A node notes at most this many pages: those of 4 GiB of cache.
inline constexpr uint64_t kMaxCachedPages = uint64_t{1} << 20;

struct CachedPages {
  ClusterUuid cluster_uuid = {};
  uint32_t node = 0;
  uint32_t snapshot = 0;        // the newest snapshot when the file was written
  std::vector<uint64_t> pages;  // words of SnapshotPointers; first those that were used lately

  bool operator==(const CachedPages&) const = default;
};

/// Returns the path of the file of this node.
std::string cached_pages_path(const std::string& directory, uint32_t node);

/// Replaces the file of the node `cached.node`. Errors: those of the file system. After an error
/// the old file is still there, if there was one. REQUIRES: at most kMaxCachedPages pages; the
/// folder of the node exists.
Result<void> write_cached_pages(FileSystem& file_system, const std::string& directory,
                                const CachedPages& cached);

/// Returns the content of the file, or nothing if it is missing. Errors: code corruption, with path
/// and reason, if it is damaged or belongs to another node; those of the file system.
Result<std::optional<CachedPages>> read_cached_pages(FileSystem& file_system,
                                                     const std::string& directory, uint32_t node);

}  // namespace atolldb
