// Where composers and the combination of roots get base pages from and put new ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/mastertree/build.h"
#include "engine/snapshot/page_reader.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_writer.h"
#include "engine/snapshot/stand_in.h"
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

/// What a pointer of the base leads to (R56).
struct FoundPage {
  bool is_readable = true;
  /// The pointer led to a stand-in. If the page is readable now, `held` are the log records that
  /// must be applied to its range [low, high).
  bool was_lost = false;
  LostPage lost;  // not readable: what the next stand-in says
  uint64_t low = 0;
  uint64_t high = 0;
  bool high_is_end = false;
  std::vector<HeldRecord> held;
  std::string reason;  // not readable: why
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
  /// The same of a page that may be damaged, or have a stand-in: code corruption only for pages
  /// that can be read and are of another storage, type or layer. With `takes_held` the held records
  /// are given out of a page that cannot be read, too.
  Result<FoundPage> find(SnapshotPointer pointer, PageBuffer& into, PageType type, PageType other,
                         uint8_t layer, bool takes_held);
  /// A stand-in for a range (`page` has level, layer and range), and new held records after those
  /// of `lost`. The pointer is marked.
  Result<SnapshotPointer> write_stand_in(PageBuffer& page, const LostPage& lost,
                                         std::span<const std::byte> records);
  /// Copies a page to the writer: version word, type, layer, level, and all behind the header.
  Result<SnapshotPointer> write(PageBuffer& page);
  /// The same for pages that are to follow each other. `place` is told where the first one will be,
  /// and may still change them all.
  Result<void> write_run(std::span<PageBuffer> pages,
                         const std::function<void(SnapshotPointer first)>& place);

  Result<void> check_cancelled() const;
  uint64_t pages_read() const { return pages_read_; }
  uint64_t pages_written() const { return pages_written_; }
  /// Pages that stand for others, written or used on.
  uint64_t stand_ins() const { return stand_ins_; }
  void count_stand_in() { ++stand_ins_; }
  uint32_t storage_id() const { return storage_id_; }

 private:
  void copy(PageBuffer& from, PageHeader& to);
  Result<void> check_page(SnapshotPointer pointer, const PageHeader& header, PageType type,
                          PageType other, uint8_t layer) const;
  bool read_stand_in(SnapshotPointer pointer, PageBuffer& into, std::string& reason);
  bool take_held(SnapshotPointer last, std::vector<HeldRecord>& held, std::string& reason);
  bool compact_held(const LostPage& lost, std::span<const std::byte> records,
                    std::vector<std::byte>& compacted);

  PageReader base_;
  SnapshotWriter& writer_;
  std::mutex* writer_mutex_;  // null: nobody else uses the writer
  uint32_t storage_id_;
  const std::function<bool()>& cancelled_;
  uint64_t pages_read_ = 0;
  uint64_t pages_written_ = 0;
  uint64_t stand_ins_ = 0;
};

/// Keys of a Master-tree in a layer below `prefix`, for people.
std::string text_of_range(std::string_view prefix, const SliceRange& range);

/// A base page that its checksum calls good says what cannot be.
std::unexpected<Error> wrong_page(uint32_t storage_id, SnapshotPointer page,
                                  const std::string& reason);

}  // namespace atolldb
