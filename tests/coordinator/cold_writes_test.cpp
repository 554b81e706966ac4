// The choice between whole pages and single records, as a function of their memory (R76).
#include "coordinator/snapshots/cold_writes.h"

#include <gtest/gtest.h>

#include "shared/memory/page_header.h"

namespace atolldb {
namespace {

constexpr uint64_t kPages = 600;                     // that the snapshot wrote
constexpr uint64_t kBytes = kPages * kPageBytes;     // of all these pages
constexpr uint64_t kHalf = kBytes * 6 / 10 / 2;      // records that take half of them
constexpr uint64_t kNineTenths = kBytes * 54 / 100;  // records that take nine tenths of them

ColdWritesInput input(bool uses_records, uint64_t changed_bytes) {
  return {.fits_in_pools = false,
          .uses_records = uses_records,
          .changed_bytes = changed_bytes,
          .rewritten_pages = kPages};
}

TEST(PrefersRecordsTest, BeginsWithRecordsBelowHalfOfTheMemoryOfPages) {
  EXPECT_TRUE(prefers_records(input(false, 0)));
  EXPECT_TRUE(prefers_records(input(false, kHalf - 10)));
  EXPECT_FALSE(prefers_records(input(false, kHalf + 10)));
}

TEST(PrefersRecordsTest, GoesBackToPagesAtNineTenthsOfTheirMemory) {
  EXPECT_TRUE(prefers_records(input(true, kHalf + 10))) << "the present choice is kept";
  EXPECT_TRUE(prefers_records(input(true, kNineTenths - 10)));
  EXPECT_FALSE(prefers_records(input(true, kNineTenths + 10)));
}

TEST(PrefersRecordsTest, UsesPagesIfAllDataFitInThePools) {
  for (const bool uses_records : {false, true}) {
    ColdWritesInput fits = input(uses_records, 0);
    fits.fits_in_pools = true;
    EXPECT_FALSE(prefers_records(fits));
  }
}

TEST(PrefersRecordsTest, KeepsTheChoiceIfTheSnapshotWroteNoPages) {
  for (const bool uses_records : {false, true}) {
    ColdWritesInput unknown = input(uses_records, 0);
    unknown.rewritten_pages = 0;
    EXPECT_EQ(prefers_records(unknown), uses_records);
  }
}

TEST(PrefersRecordsTest, KeepsARevisedChoiceIfTheSnapshotHasEarlierChanges) {
  for (const bool uses_records : {false, true}) {
    for (const uint64_t changed : {uint64_t{0}, kBytes}) {
      ColdWritesInput mixed = input(uses_records, changed);
      mixed.is_mixed = true;
      EXPECT_EQ(prefers_records(mixed), uses_records);
    }
  }
}

TEST(CopiesTooManyPagesTest, NeedsManyPagesAndFewLogBytes) {
  constexpr uint64_t kPool = 30'000;
  constexpr uint64_t kMany = 1'000;
  constexpr uint64_t kFewBytes = kMany * kPageBytes * 6 / 10 / 2;
  EXPECT_TRUE(copies_too_many_pages({kMany, 0, 0.2}, kPool));
  EXPECT_TRUE(copies_too_many_pages({kMany, kFewBytes - 10, 0.2}, kPool));
  EXPECT_FALSE(copies_too_many_pages({kMany, kFewBytes + 10, 0.2}, kPool)) << "the margin is kept";
  EXPECT_FALSE(copies_too_many_pages({100, 0, 0.2}, kPool)) << "the pool lasts for long";
  EXPECT_TRUE(copies_too_many_pages({101, 0, 0.2}, kPool));
  EXPECT_FALSE(copies_too_many_pages({101, 0, 0.3}, kPool)) << "as many pages, in a longer time";
  EXPECT_FALSE(copies_too_many_pages({0, 0, 0.2}, 0));
}

/// Snapshot 9 with pages of two storages in its own files and in those of snapshot 5. The pages in
/// the file of snapshot 3 are not counted by storage.
SnapshotMetadata snapshot() {
  SnapshotMetadata snapshot;
  snapshot.id = 9;
  snapshot.live = {{1, 5, 0, 100, 7}, {1, 9, 0, 10, 1}, {1, 9, 1, 20, 2}, {2, 9, 0, 60, 0}};
  snapshot.files = {{3, 0, "d", 300}, {5, 0, "d", 5000}, {9, 0, "d", 5000}};
  return snapshot;
}

TEST(FitsInPoolsTest, CountsLivePagesTwice) {
  constexpr uint64_t kLive = 107 + 11 + 22 + 60;
  EXPECT_TRUE(fits_in_pools(snapshot(), 2 * kLive));
  EXPECT_FALSE(fits_in_pools(snapshot(), 2 * kLive - 1));
}

TEST(FitsInPoolsTest, CountsAllPagesOfAFileWithoutCounts) {
  SnapshotMetadata uncounted = snapshot();
  uncounted.uncounted = {3};
  EXPECT_TRUE(fits_in_pools(uncounted, 2 * (200 + 300)));
  EXPECT_FALSE(fits_in_pools(uncounted, 2 * (200 + 300) - 1));
}

TEST(RewrittenPagesTest, AreThePagesOfTheStorageInTheFilesOfTheSnapshot) {
  EXPECT_EQ(rewritten_pages(snapshot(), 1), 10 + 1 + 20 + 2);
  EXPECT_EQ(rewritten_pages(snapshot(), 2), 60);
  EXPECT_EQ(rewritten_pages(snapshot(), 3), 0);
}

}  // namespace
}  // namespace atolldb
