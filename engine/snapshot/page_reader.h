// Reads pages of snapshots for those who need them in about the order in which they lie: composers
// and walks.
#pragma once

#include <cstdint>

#include "engine/snapshot/snapshot_files.h"
#include "shared/error.h"
#include "shared/file/io_buffer.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// One thread's. `files` outlives it.
class PageReader {
 public:
  explicit PageReader(const SnapshotFiles& files) : files_(files) {}

  /// As SnapshotFiles::read; but a page a little behind the last one is read with those behind it.
  Result<void> read(SnapshotPointer pointer, PageHeader* into);

 private:
  const SnapshotFiles& files_;
  IoBuffer pages_{kPagesPerRead * kPageBytes};
  uint64_t first_ = 0;  // word of the first page there
  uint64_t count_ = 0;  // of pages
  uint64_t last_ = 0;   // word of the page read last
};

}  // namespace atolldb
