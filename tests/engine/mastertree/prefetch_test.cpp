// Tests of prefetching. A prefetch is a hint that registers nothing. The pages that it remembers
// never give a wrong answer.
#include <gtest/gtest.h>

#include <array>
#include <vector>

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
