// Page input and output of composers and of `combine_roots`.
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

#include "engine/format/stand_in.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/mastertree/build.h"
#include "engine/snapshot/live_pages.h"
#include "engine/snapshot/page_ahead.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_writer.h"
#include "shared/base/error.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// A private page, initially all zeros.
struct alignas(kPageBytes) PageBuffer {
  std::byte bytes[kPageBytes] = {};

  PageHeader& header() { return *reinterpret_cast<PageHeader*>(bytes); }
  template <typename Page>
  Page* as() {
    return reinterpret_cast<Page*>(bytes);
  }
};

/// The result of following a pointer of the base (R56).
struct FoundPage {
  bool is_readable = true;
  /// The pointer led to a stand-in. If the page is readable now, `held` has the log records that
  /// must be applied to [low, high), the range of the stand-in.
  bool was_lost = false;
  LostPage lost;  // if not readable: what the next stand-in records
  uint64_t low = 0;
  uint64_t high = 0;
  bool high_is_end = false;
  std::vector<HeldRecord> held;
  std::string reason;  // if not readable: the reason
};

/// Reads pages of the base and writes pages of the new snapshot, for one storage. Counts the pages.
/// Thread: one at a time.
class PageOutput {
 public:
  PageOutput(const SnapshotFiles& base, SnapshotWriter& writer, std::mutex* writer_mutex,
             uint32_t storage_id, const std::function<bool()>& cancelled,
             PageAhead* ahead = nullptr)
      : base_(base),
        ahead_(ahead),
        writer_(writer),
        writer_mutex_(writer_mutex),
        storage_id_(storage_id),
        cancelled_(cancelled) {}

  /// Reads a page of the base. Error: code corruption if it cannot be read, or has another storage,
  /// type or layer.
  Result<void> read(SnapshotPointer pointer, PageBuffer& into, PageType type, uint8_t layer);
  /// Reads a page that may have either type.
  Result<void> read(SnapshotPointer pointer, PageBuffer& into, PageType type, PageType other,
                    uint8_t layer);
  /// Reads a page that may be damaged or replaced by a stand-in. Returns code corruption only for a
  /// readable page of another storage, type or layer. With `takes_held` the result has the held
  /// records even if the page cannot be read.
  Result<FoundPage> find(SnapshotPointer pointer, PageBuffer& into, PageType type, PageType other,
                         uint8_t layer, bool takes_held);
  /// Maximum number of pages of one call of `request`: all children of a page of a Master-tree.
  static constexpr size_t kMaxRequests = 160;
  /// Returns whether `request` does something.
  bool has_ahead() const { return ahead_ != nullptr; }
  /// Begins to read pages of the base that will be needed soon, as far as there is room. Keeps the
  /// pages of the previous call, and drops those of earlier calls. Does nothing if a few reads of
  /// adjacent pages are enough (PageReader). Returns how many of the pages, from the first on, need
  /// no further request. REQUIRES: at most kMaxRequests pages.
  size_t request(std::span<const SnapshotPointer> pages);
  /// Reads a page of the base that a composer will need after its current one, and keeps it for the
  /// next `read` or `find` of this page. Returns null if it cannot be read.
  const PageHeader* peek(SnapshotPointer pointer);
  /// Copies a page of the base from the node's cache. Returns false if the cache lacks the page.
  bool read_cached(SnapshotPointer pointer, PageBuffer& into);
  /// Writes a stand-in for a range. `records`: new held records, which follow those of `lost`. The
  /// caller sets level, layer and range in `page`. Returns a pointer with kStandInBit set.
  Result<SnapshotPointer> write_stand_in(PageBuffer& page, const LostPage& lost,
                                         std::span<const std::byte> records);
  /// Copies a page to the writer: version word, type, layer, level, and all bytes after the header.
  /// Returns the pointer to the new page.
  Result<SnapshotPointer> write(PageBuffer& page);
  /// Writes pages that must be adjacent in the file. `place` receives the pointer of the first page
  /// and may still change all pages.
  Result<void> write_run(std::span<PageBuffer> pages,
                         const std::function<void(SnapshotPointer first)>& place);

  /// Counts a page of the base that the new snapshot does not use (R67). Called once for each such
  /// page, by the composer of the partition in which the page begins.
  void count_replaced(SnapshotPointer page, uint32_t layer);
  /// Counts a captured page as written. It was written before the composer began.
  void count_captured(SnapshotPointer page);
  /// The records that the composer of a Master-tree has written and replaced. It counts them.
  RecordChange& records() { return records_; }
  const RecordChange& records() const { return records_; }
  /// Checks that a child is not newer than the base page that leads to it. The choice of pages to
  /// copy relies on this order (R68). Error: code corruption.
  Result<void> check_child(SnapshotPointer parent, SnapshotPointer child) const;

  Result<void> check_cancelled() const;
  /// Returns the number of pages of the base that were used and did not come from the cache.
  uint64_t pages_read() const { return pages_used_ - pages_cached_; }
  uint64_t pages_cached() const { return pages_cached_; }
  uint64_t pages_written() const { return pages_written_; }
  /// Returns the number of stand-ins that were written or retained, plus the number of unreadable
  /// pages of sequential storages.
  uint64_t stand_ins() const { return stand_ins_; }
  void count_stand_in() { ++stand_ins_; }
  uint32_t storage_id() const { return storage_id_; }
  const PageCounts& written() const { return written_; }
  const PageCounts& replaced() const { return replaced_; }

 private:
  void copy(PageBuffer& from, PageHeader& to);
  Result<void> check_page(SnapshotPointer pointer, const PageHeader& header, PageType type,
                          PageType other, uint8_t layer) const;
  bool read_stand_in(SnapshotPointer pointer, PageBuffer& into, std::string& reason);
  bool take_held(SnapshotPointer last, std::vector<HeldRecord>& held, std::string& reason);
  bool compact_held(const LostPage& lost, std::span<const std::byte> records,
                    std::vector<std::byte>& compacted);

  /// Minimum number of reads that are worth a look-ahead.
  static constexpr uint32_t kMinReads = 4;

  Result<void> read_base(SnapshotPointer pointer, PageBuffer& into);

  PageReader base_;
  PageAhead* ahead_;  // null: no look-ahead
  // The page that was peeked at last; null after it was read.
  SnapshotPointer peeked_;
  std::unique_ptr<PageBuffer> peeked_page_;
  SnapshotWriter& writer_;
  std::mutex* writer_mutex_;  // null: no other thread uses the writer
  uint32_t storage_id_;
  const std::function<bool()>& cancelled_;
  uint64_t pages_used_ = 0;  // pages of the base, each time that a composer read them
  // Part of pages_used_ that came from the cache. Pages of `peek` never do: they are interior ones.
  uint64_t pages_cached_ = 0;
  uint64_t pages_written_ = 0;
  uint64_t stand_ins_ = 0;
  PageCounts written_;
  PageCounts replaced_;
  RecordChange records_;
};

/// Returns a range of keys in the layer below `prefix` as human-readable text.
std::string text_of_range(std::string_view prefix, const SliceRange& range);

/// Returns the error for a base page whose checksum is right but whose content is impossible.
std::unexpected<Error> wrong_page(uint32_t storage_id, SnapshotPointer page,
                                  const std::string& reason);

}  // namespace atolldb
