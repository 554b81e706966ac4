// Where composers and the combination of roots get base pages from and put new ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "engine/snapshot/page_reader.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_writer.h"
#include "shared/error.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// A private page, zeros at first.
struct alignas(kPageBytes) PageBuffer {
  std::byte bytes[kPageBytes] = {};

  PageHeader& header() { return *reinterpret_cast<PageHeader*>(bytes); }
  template <typename Page>
  Page* as() {
    return reinterpret_cast<Page*>(bytes);
  }
};

/// Of one storage; used by one thread.
class PageOutput {
 public:
  PageOutput(const SnapshotFiles& base, SnapshotWriter& writer, std::mutex* writer_mutex,
             uint32_t storage_id, const std::function<bool()>& cancelled)
      : base_(base),
        writer_(writer),
        writer_mutex_(writer_mutex),
        storage_id_(storage_id),
        cancelled_(cancelled) {}

  /// A page of the base. Code corruption if it is of another storage, type or layer.
  Result<void> read(SnapshotPointer pointer, PageBuffer& into, PageType type, uint8_t layer);
  /// The same, of a page that may be of either type.
  Result<void> read(SnapshotPointer pointer, PageBuffer& into, PageType type, PageType other,
                    uint8_t layer);
  /// Copies a page to the writer: version word, type, layer, level, and all behind the header.
  Result<SnapshotPointer> write(PageBuffer& page);
  /// The same for pages that are to follow each other. `place` is told where the first one will be,
  /// and may still change them all.
  Result<void> write_run(std::span<PageBuffer> pages,
                         const std::function<void(SnapshotPointer first)>& place);

  Result<void> check_cancelled() const;
  uint64_t pages_read() const { return pages_read_; }
  uint64_t pages_written() const { return pages_written_; }
  uint32_t storage_id() const { return storage_id_; }

 private:
  void copy(PageBuffer& from, PageHeader& to);

  PageReader base_;
  SnapshotWriter& writer_;
  std::mutex* writer_mutex_;  // null: nobody else uses the writer
  uint32_t storage_id_;
  const std::function<bool()>& cancelled_;
  uint64_t pages_read_ = 0;
  uint64_t pages_written_ = 0;
};

/// A base page that its checksum calls good says what cannot be.
std::unexpected<Error> wrong_page(uint32_t storage_id, SnapshotPointer page,
                                  const std::string& reason);

}  // namespace atolldb
