// Snapshot pages of several look-ups, also in different storages, that are read at the same time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "engine/snapshot/snapshot_files.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"

namespace atolldb {

/// Collects pages and reads those of them together that are missing in the cache: when the batch is
/// full, at `read`, and at its end. So a transaction that knows its keys waits for the device once,
/// and not once per page. A hint: it registers nothing, and a page that is not read here is read by
/// the look-up that needs it. Thread: the worker, outside of engine calls that hold snapshot pages.
class ColdBatch {
 public:
  explicit ColdBatch(WorkerContext& worker)
      : worker_(worker), is_wanted_(worker.expects_snapshot_misses()) {}
  ColdBatch(const ColdBatch&) = delete;
  ColdBatch& operator=(const ColdBatch&) = delete;
  ~ColdBatch() { read(); }

  /// Returns whether the caller should add pages. If the worker has missed no page lately, the
  /// search would cost more than it saves.
  bool is_wanted() const { return is_wanted_; }
  /// Adds a page, unless it is null or in the batch.
  void add(SnapshotPointer page) {
    const auto end = pages_.begin() + count_;
    if (page.is_null() || std::find(pages_.begin(), end, page) != end) return;
    DCHECK(is_wanted_);
    if (count_ == pages_.size()) read();
    pages_[count_++] = page;
    DCHECK(count_ <= pages_.size());
  }
  /// Reads the pages that were added, if there are several. A single page is left to its look-up.
  void read() {
    if (count_ > 1) worker_.read_snapshot_pages(std::span(pages_).first(count_));
    count_ = 0;
  }

 private:
  WorkerContext& worker_;
  const bool is_wanted_;
  uint32_t count_ = 0;
  std::array<SnapshotPointer, kPagesPerRead> pages_;
};

}  // namespace atolldb
