// Rules of capturing volatile pages (R75). A body returns an error text, or an empty text if all is
// right. Needs the engine with sync points (`ATOLL_MUTANTS`).
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "engine/compose/capture.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/mastertree/reclaim_rules.h"

namespace atolldb::test {

/// The tree of `Reclaim` with keys that were inserted in ascending order. So all its pages except
/// the last are at least half full and can be captured. The worker `reader` captures.
class CaptureStage : public Reclaim {
 public:
  static constexpr uint64_t kKeys = 600;

  CaptureStage() {
    insert(writer(), 0, kKeys);
    settle();
    epoch = settled();
  }

  /// Ends the current epoch.
  void settle() {
    for (int i = 0; i < 2; ++i) cluster().tick();
  }
  uint64_t settled() {
    return cluster().view().control->epochs.settled.load(std::memory_order_acquire);
  }
  void update(uint64_t key, uint64_t value) {
    commit(writer(), [&](Transaction& txn) { return table().put(txn, key, value); });
  }

  /// Captures pages as of `epoch`. Stores the captured pages in `pages`, and the records of their
  /// images in `captured`.
  std::string capture(uint64_t base_epoch = 0) {
    captured.clear();
    pages.clear();
    std::string problem;
    CaptureTask task;
    task.base_epoch = base_epoch;
    task.epoch = epoch;
    task.write = [&](PageBuffer& image) -> Result<SnapshotPointer> {
      take(image, problem);
      return SnapshotPointer::make(1, 0, static_cast<uint32_t>(pages.size() + 1));
    };
    if (auto done = capture_pages(reader().worker(), storage(), task, pages); !done) {
      return done.error().message;
    }
    return problem;
  }
  bool is_captured(uint64_t key) const {
    const auto bytes = ordered_key(key);
    const uint64_t slice = slice_of(bytes);
    return std::ranges::any_of(pages, [&](const auto& page) { return page.range.contains(slice); });
  }

  uint64_t epoch = 0;
  std::map<uint64_t, uint64_t> captured;  // payloads by slice
  std::vector<CapturedPage> pages;

 private:
  void take(PageBuffer& image, std::string& problem) {
    auto* page = image.as<BorderPage>();
    const PageVersion version = image.header().version();
    for (uint32_t slot = 0; slot < version.count(); ++slot) {
      TreeRecord* record = page->record(slot);
      if (record->head.load_acquire().epoch() > epoch) problem = "a later change was captured";
      uint64_t value = 0;
      std::memcpy(&value, record->payload(), sizeof value);
      captured[page->slices()[slot]] = value;
    }
  }
};

/// A page with a change after the snapshot's epoch is not captured. The other pages are.
inline std::string later_changes_are_not_captured() {
  CaptureStage stage;
  stage.update(7, 1000);
  stage.settle();
  std::string problem = stage.capture();
  if (!problem.empty()) return problem;
  if (stage.is_captured(7)) return "the changed page was captured";
  return stage.pages.empty() ? "no page was captured" : "";
}

/// A page is not captured if a later epoch has removed records from it. The other records of the
/// page are unchanged, and only the newest removed version shows the removal (R43).
inline std::string removed_records_are_not_captured() {
  CaptureStage stage;
  BorderPage* page = stage.page_with(0);
  stage.writer().worker().leave();
  const Vid removed = Vid::make(stage.epoch + 1, 1);
  page->header.max_removed_vid.store(removed.word(), std::memory_order_relaxed);
  stage.settle();
  std::string problem = stage.capture();
  if (!problem.empty()) return problem;
  if (stage.is_captured(0)) return "a page without the removed records was captured";
  return stage.pages.empty() ? "no page was captured" : "";
}

/// A page that changes between the check of its VIDs and the copy is not captured.
inline std::string pages_that_change_meanwhile_are_not_captured() {
  CaptureStage stage;
  std::string problem;
  const AtFirst update(SyncPoint::capturing, [&] { stage.update(0, 1000); });
  problem = stage.capture();
  if (!update.was_reached()) return "the capture did not reach its sync point";
  if (!problem.empty()) return problem;
  for (const auto& [slice, value] : stage.captured) {
    if (value == 1000) return "a later payload was captured";
  }
  if (stage.is_captured(0)) return "a page that changed was captured";
  return stage.pages.empty() ? "no page was captured" : "";
}

}  // namespace atolldb::test
