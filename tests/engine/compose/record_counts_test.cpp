// Numbers of records of Master-trees in a new snapshot, from those of its base.
#include "engine/compose/record_counts.h"

#include <gtest/gtest.h>

#include <optional>

namespace atolldb {
namespace {

/// A snapshot of storage 7 with 100 records in 10 pages of snapshot 2, and the plan of the next.
struct CountedBase {
  CountedBase() {
    base.id = 3;
    base.storages = {{7, StorageType::mastertree, "t", SnapshotPointer::make(2, 0, 1), 0}};
    base.files = {{2, 0, "/data", 20}};
    base.live = {{7, 2, 0, 9, 1}, {8, 2, 0, 5, 0}};
    base.record_counts = {{7, 100, false}};
    plan.base = base.id;
    plan.files = base.files;
    storage.id = 7;
    storage.type = StorageType::mastertree;
    storage.base_root = base.storages[0].root;
  }

  std::optional<RecordCount> after(const RecordChange& change, bool is_damaged = false) const {
    return records_after(plan, storage, base, change, is_damaged);
  }

  SnapshotMetadata base;
  SnapshotPlan plan;
  PlannedStorage storage;
};

TEST(RecordCountsTest, TheCountIsExactIfComposersHaveReadAllPagesThatTheyReplace) {
  const CountedBase made;
  EXPECT_EQ(made.after({}), (RecordCount{7, 100, false}));
  EXPECT_EQ(made.after({.written = 30, .replaced = 20}), (RecordCount{7, 110, false}));
}

TEST(RecordCountsTest, PagesThatWereNotReadCountAsThoseOfTheSample) {
  const CountedBase made;
  // Appends have filled small pages. Average pages of the storage have 10 records.
  const RecordChange appended{
      .written = 40, .replaced = 8, .unread_pages = 4, .sampled_pages = 2, .sampled_records = 8};
  EXPECT_EQ(made.after(appended), (RecordCount{7, 116, true}));
  RecordChange all_read = appended;
  all_read.unread_pages = 0;
  EXPECT_EQ(made.after(all_read), (RecordCount{7, 132, false}));
}

TEST(RecordCountsTest, PagesThatWereNotReadCountAsAveragePagesIfThereIsNoSample) {
  CountedBase made;
  const RecordChange change{.written = 30, .replaced = 10, .unread_pages = 2};
  EXPECT_EQ(made.after(change), (RecordCount{7, 100, true}));
  made.base.record_counts[0].is_estimate = true;
  EXPECT_EQ(made.after({}), (RecordCount{7, 100, true})) << "it stays an estimate";
  EXPECT_EQ(made.after({.unread_pages = 1000}), (RecordCount{7, 0, true})) << "never negative";
}

TEST(RecordCountsTest, AStorageThatWasWrittenAsAWholeHasTheRecordsThatWereWritten) {
  CountedBase made;
  made.base.record_counts.clear();
  EXPECT_EQ(made.after({.written = 5}), std::nullopt) << "nothing is known of the base";
  made.plan.victims = {2};
  const RecordChange change{.written = 40, .replaced = 3, .unread_pages = 2};
  EXPECT_EQ(made.after(change), (RecordCount{7, 40, false}));
  EXPECT_EQ(made.after(change, true), std::nullopt) << "an unreadable page is left";
  made.plan.victims.clear();
  made.storage.base_root = {};
  EXPECT_EQ(made.after(change), (RecordCount{7, 40, false})) << "it was empty before";
}

}  // namespace
}  // namespace atolldb
