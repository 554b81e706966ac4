// Tests of prefetching. A prefetch is a hint that registers nothing. The pages that it remembers
// never give a wrong answer.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "engine/mastertree/descent.h"
#include "tests/engine/mastertree/cursor_reader.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kManyKeys = 2'000;  // many pages on more than one level

class Prefetch : public testing::Test {
 protected:
  void fill() {
    for (uint64_t key = 0; key < kManyKeys; key += 20) {
      stage_.commit_alone([&](Transaction& txn) {
        Status status = Status::ok;
        for (uint64_t i = key; i < key + 20 && status == Status::ok; ++i) {
          status = many_.insert(txn, 2 * i, i);
        }
        return status;
      });
    }
  }
  /// Prefetches the keys for the numbers, which may or may not exist.
  void prefetch(Transaction& txn, const std::vector<uint64_t>& numbers, uint32_t records) {
    std::vector<std::array<std::byte, 8>> keys;
    for (const uint64_t number : numbers) keys.push_back(ordered_key(number));
    std::vector<Bytes> views(keys.begin(), keys.end());
    many_.tree().prefetch(txn, views, records);
  }
  static void expect_nothing_registered(const Transaction& txn) {
    EXPECT_EQ(txn.read_set_size(), 0u);
    EXPECT_EQ(txn.pointer_set_size(), 0u);
    EXPECT_EQ(txn.page_version_set_size(), 0u);
  }

  Stage stage_;
  Table many_{Kind::tree, stage_.empty_tree("many")};
};

TEST_F(Prefetch, OfATreeRegistersNothingWhetherTheKeysAreThereOrNot) {
  Transaction& a = stage_.a();
  for (const bool is_filled : {false, true}) {
    if (is_filled) fill();
    for (const uint32_t records : {0u, 1u, 10u}) {
      ASSERT_EQ(a.begin(), Status::ok);
      prefetch(a, {0, 1, 500, 501, 2 * kManyKeys + 7, ~uint64_t{0}}, records);
      expect_nothing_registered(a);
      EXPECT_EQ(a.commit(), Status::ok);
    }
  }
}

TEST_F(Prefetch, OfAnArrayRegistersNothingWhereAPageIsMissing) {
  Transaction& a = stage_.a();
  const Array empty(stage_.cluster().create("empty", StorageType::array, 8, 1'000'000));
  const std::array<uint64_t, 3> indexes = {0, 999'999, 1'000'000};
  ASSERT_EQ(a.begin(), Status::ok);
  empty.prefetch(a, indexes);
  stage_.array().array().prefetch(a, indexes);
  expect_nothing_registered(a);
  EXPECT_EQ(a.commit(), Status::ok);
}

TEST_F(Prefetch, LooksUpEveryKeyAfterwardsAndMissesWhatIsNotThere) {
  fill();
  Transaction& a = stage_.a();
  for (uint64_t first = 0; first < 2 * kManyKeys; first += 40) {
    std::vector<uint64_t> numbers;
    for (uint64_t number = first; number < first + 40; ++number) numbers.push_back(number);
    ASSERT_EQ(a.begin(), Status::ok);
    prefetch(a, numbers, 1);
    for (const uint64_t number : numbers) {
      uint64_t value = 0;
      const Status status = many_.get(a, number, value);
      ASSERT_EQ(status, number % 2 == 0 ? Status::ok : Status::not_found) << number;
      if (status == Status::ok) {
        EXPECT_EQ(value, number / 2);
      }
    }
    EXPECT_EQ(a.commit(), Status::ok);
  }
}

/// A scan stores the page that it visits next in the memo, 16 records before the end of a page. In
/// a batch it does so before the batch reaches that record.
TEST_F(Prefetch, OfTheNextPageOfAScanBeginsSixteenRecordsBeforeItsEnd) {
  fill();
  Transaction& a = stage_.a();
  constexpr uint64_t kAhead = 16;
  for (const bool in_batches : {false, true}) {
    for (const bool forward : {true, false}) {
      stage_.ticks(3);  // empties the memo
      ASSERT_EQ(a.begin(), Status::ok);
      StorageControl& storage = many_.tree().storage();
      // The pages of the middle key and after it, as a descent finds them.
      const BorderPage* const page =
          find_border(a.worker(), storage, root_link(storage), kManyKeys).page;
      ASSERT_NE(page, nullptr);
      ASSERT_TRUE(page->low != 0 && !page->high_is_end());
      const uint64_t next = forward ? page->high : page->low - 1;
      const auto is_next_known = [&] {
        const PageMemo::Entry* const entry = a.worker().memo().find(&storage.root, next);
        return entry != nullptr && tree_page(entry->page)->contains(next);
      };
      const auto low = ordered_key(page->low);
      const auto high = ordered_key(page->high);
      const ScanRange range = forward ? ScanRange{.low = low, .has_low = true}
                                      : ScanRange{.high = high, .has_high = true};
      MasterTreeCursor cursor(many_.tree(), a, range, forward);
      const uint64_t count = page->header.version().count();
      ASSERT_GT(count, kAhead + 8);
      CursorReader reader(cursor, in_batches ? 4 : 0);
      for (uint64_t left = count; left > kAhead + 4; --left) {
        EXPECT_FALSE(is_next_known()) << left;
        ASSERT_EQ(reader.next(), Status::ok);
      }
      for (uint64_t left = kAhead + 4; left >= kAhead; --left) {
        ASSERT_EQ(reader.next(), Status::ok);
      }
      EXPECT_TRUE(is_next_known());
      EXPECT_EQ(a.commit(), Status::ok);
    }
  }
}

TEST_F(Prefetch, IsForgottenWhenItsPagesAreSplitBeforeTheLookUp) {
  fill();
  Transaction& a = stage_.a();
  std::vector<uint64_t> numbers;
  for (uint64_t number = 1'000; number < 1'200; number += 2) numbers.push_back(number);
  ASSERT_EQ(a.begin(), Status::ok);
  prefetch(a, numbers, 1);
  const uint64_t splits = stage_.cluster().metrics(1, 0).splits.get();
  for (uint64_t number = 1'001; number < 1'200; number += 2) {
    stage_.commit_alone([&](Transaction& txn) { return many_.insert(txn, number, 7); });
  }
  ASSERT_GT(stage_.cluster().metrics(1, 0).splits.get(), splits);
  for (uint64_t number = 1'000; number < 1'200; ++number) {
    uint64_t value = 0;
    ASSERT_EQ(many_.get(a, number, value), Status::ok) << number;
    EXPECT_EQ(value, number % 2 == 0 ? number / 2 : 7);
  }
  EXPECT_EQ(a.commit(), Status::ok);
}

}  // namespace
}  // namespace atolldb::test
