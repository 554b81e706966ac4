// Scans of a tree whose border pages are in a snapshot only, below volatile interior pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/engine/install/cold_tree.h"
#include "tests/engine/mastertree/cursor_reader.h"

namespace atolldb::test {
namespace {

struct ColdScan {
  uint64_t records = 0;
  uint64_t changed = 0;  // records that are "new"
  uint64_t pages = 0;    // border pages of the snapshot that the scan has visited
  uint64_t ahead = 0;    // pages that it read before it reached them
};

/// Scans the records [first, last) in one transaction. `rows`: as in CursorReader.
ColdScan scan_cold(ColdTree& test, uint64_t first, uint64_t last, bool forward, size_t rows = 0) {
  ColdScan scan;
  const Counter& ahead = test.warm.cluster.metrics(0, 0).scan_pages_ahead;
  const uint64_t before = ahead.get();
  const std::string low = big_endian(first);
  const std::string high = big_endian(last);
  Transaction& txn = *test.warm.cluster.worker(0).transaction;
  EXPECT_EQ(txn.begin(), Status::ok);
  MasterTreeCursor cursor(
      test.tree, txn,
      {.low = bytes_of(low), .has_low = true, .high = bytes_of(high), .has_high = true}, forward);
  CursorReader reader(cursor, rows);
  std::vector<uint64_t> pages;
  Status status = Status::ok;
  while ((status = reader.next()) == Status::ok) {
    const uint64_t wanted = forward ? first + scan.records : last - 1 - scan.records;
    EXPECT_EQ(slice_of(reader.key()), wanted);
    const Bytes payload = reader.payload();
    const std::string value(reinterpret_cast<const char*>(payload.data()), payload.size());
    EXPECT_TRUE(value == "old" || value == "new") << value;
    scan.changed += value == "new" ? 1 : 0;
    ++scan.records;
    const bool is_cold = reader.ref().record == nullptr;
    if (is_cold) pages.push_back(reader.ref().place);
  }
  EXPECT_EQ(status, Status::end_of_scan);
  EXPECT_EQ(txn.commit(), Status::ok);
  test.warm.cluster.worker(0).context->leave();
  std::ranges::sort(pages);
  const auto same = std::ranges::unique(pages);
  scan.pages = pages.size() - same.size();
  scan.ahead = ahead.get() - before;
  return scan;
}

/// Each cold page has a pointer of its own, which the scan registers. Some records are in the delta
/// tree.
TEST(ColdScans, ReadTheNextPagesOfAVolatileParentTogether) {
  constexpr uint64_t kChanged = 20;
  ColdTree test(2, 96);
  ASSERT_EQ(test.prepare_large(), "");  // many more pages than the cache has frames
  for (uint64_t i = 0; i < kChanged; ++i) {
    ASSERT_EQ(test.write(1, 1'000 * i + 7, "new"), Status::ok);
  }
  test.warm.cluster.worker(1).context->leave();
  ASSERT_EQ(test.delta_records(), kChanged);
  for (const size_t rows : {0u, 1u, 70u}) {
    for (const bool forward : {true, false}) {
      const ColdScan scan = scan_cold(test, 0, 25'000, forward, rows);
      EXPECT_EQ(scan.records, 25'000u);
      EXPECT_EQ(scan.changed, kChanged);
      ASSERT_GT(scan.pages, 150u);
      // The cache holds some of the pages from the scan before.
      EXPECT_GT(scan.ahead, (scan.pages - 96) / 2) << (forward ? "forward" : "backward");
    }
  }
}

TEST(ColdScans, ReadNoPageOfAVolatileParentBeyondANearBound) {
  ColdTree test(2, 96);
  ASSERT_EQ(test.prepare_large(), "");
  for (uint64_t first = 1'000; first < 20'000; first += 3'000) {
    for (const bool forward : {true, false}) {
      const ColdScan scan = scan_cold(test, first, first + 400, forward, first % 2'000 / 20);
      EXPECT_EQ(scan.records, 400u);
      ASSERT_GT(scan.pages, 1u);
      EXPECT_LT(scan.ahead, scan.pages + (forward ? 0 : 1));
    }
  }
}

}  // namespace
}  // namespace atolldb::test
