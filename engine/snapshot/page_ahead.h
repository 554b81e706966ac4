// Reads pages of snapshots before they are needed, many at a time (BatchReader).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/snapshot/snapshot_files.h"
#include "shared/file/batch_reader.h"
#include "shared/file/io_buffer.h"
#include "shared/memory/page_header.h"

namespace atolldb {

class SnapshotCache;

/// Holds pages that were requested, until the caller takes them. There are two windows: while the
/// caller uses the pages of one, the device reads those of the next. Thread: one. Allocates no
/// memory after its construction, unless a read fails.
class PageAhead {
 public:
  /// Maximum number of pages of a window: requested ones, and those between them that are read as
  /// well.
  static constexpr uint32_t kMaxPages = 256;
  /// Maximum number of pages between two requested ones that one read gets. A disk in the cloud
  /// reads three pages more in the time that another read would take.
  static constexpr uint32_t kMaxGap = 3;

  /// `cache`: pages that it has are copied from there and not read; null: none. REQUIRES: `files`
  /// and `cache` outlive the object. The files stay open while pages are requested.
  explicit PageAhead(const SnapshotFiles& files,
                     BatchReader::Method method = BatchReader::Method::automatic,
                     const SnapshotCache* cache = nullptr);
  PageAhead(const PageAhead&) = delete;
  PageAhead& operator=(const PageAhead&) = delete;
  ~PageAhead() { clear(); }

  /// Switches to the other window: waits for its pending reads and drops its pages. The pages of
  /// the current window stay until the next call.
  void begin_window();
  /// Requests a page, if it is not requested already. If it lies shortly after the page that was
  /// requested before, one read gets both and the pages between them. Other pages come from the
  /// cache if it has them. Returns false if the window has no room. A new window has room for
  /// kMaxPages / (kMaxGap + 1) requests, and for kMaxPages if no pages between them are read.
  bool request(SnapshotPointer page);
  /// Returns whether one read gets `page` as well as the pages from `first` to `last`.
  static bool joins(SnapshotPointer first, SnapshotPointer last, SnapshotPointer page) {
    return page.word() > last.word() && page.word() - last.word() <= kMaxGap + 1 &&
           page.word() - first.word() < kPagesPerRead;
  }
  /// Passes the requests to the device. Does not wait.
  void start();
  /// Waits for a requested page, and copies it to `into`. Returns false if the page was not
  /// requested or cannot be read; the caller then reads it with SnapshotFiles::read, which returns
  /// the error. Counts the page if it came from the cache.
  bool take(SnapshotPointer page, PageHeader* into);
  /// Copies a page from the cache, whether it was requested or not. Returns false if the cache
  /// lacks it. Does not count the page.
  bool copy_cached(SnapshotPointer page, PageHeader* into) const;
  /// Waits for all reads. The pages can still be taken.
  void finish();
  /// Waits for all reads, and forgets the pages that were not taken.
  void clear();
  /// Returns the number of taken pages that came from the cache.
  uint64_t cached_count() const { return cached_count_; }

 private:
  // `copied`: good, from the cache.
  enum class State : uint8_t { free, requested, submitted, good, copied, bad };
  struct Slot {
    uint64_t word = 0;
    uint32_t run = 1;  // in the first slot of a run: number of pages of the run
    State state = State::free;
  };

  static constexpr uint32_t kSlots = 2 * kMaxPages;

  bool copy_to_window(SnapshotPointer page);
  void submit_run();
  void finish_one();
  Slot* find(SnapshotPointer page);
  std::byte* buffer(uint32_t slot) { return buffers_.bytes().data() + slot * kPageBytes; }

  const SnapshotFiles& files_;
  const SnapshotCache* const cache_;
  IoBuffer buffers_{kSlots * kPageBytes};
  std::vector<Slot> slots_{kSlots};
  uint32_t window_ = 0;  // first slot of the current window
  uint32_t next_ = 0;    // slot of the next request
  // Slots of the current window from this one on have copies of cached pages. They are at the end,
  // so that a run before them can grow.
  uint32_t end_ = kMaxPages;
  uint32_t first_ = 0;  // first slot of the run that is not submitted yet
  uint32_t count_ = 0;  // number of pages of that run; 0: there is none
  uint64_t cached_count_ = 0;
  std::unique_ptr<BatchReader> reader_;
};

}  // namespace atolldb
