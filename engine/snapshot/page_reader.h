// Reads snapshot pages for composers and walks, which need them roughly in file order.
#pragma once

#include <cstdint>

#include "engine/snapshot/snapshot_files.h"
#include "shared/base/error.h"
#include "shared/file/io_buffer.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// Thread: one. `files` outlives the reader.
class PageReader {
 public:
  explicit PageReader(const SnapshotFiles& files) : files_(files) {}

  /// Reads a page like SnapshotFiles::read. If the page lies shortly after the last one, the reader
  /// also reads the pages that follow it.
  Result<void> read(SnapshotPointer pointer, PageHeader* into);

 private:
  const SnapshotFiles& files_;
  IoBuffer pages_{kPagesPerRead * kPageBytes};
  uint64_t first_ = 0;  // word of the first page in `pages_`
  uint64_t count_ = 0;  // number of pages in `pages_`
  uint64_t last_ = 0;   // word of the page read last
};

}  // namespace atolldb
