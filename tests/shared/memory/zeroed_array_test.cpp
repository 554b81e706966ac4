// Zeroed arrays: items are zero before their first use, with pages of any size.
#include "shared/memory/zeroed_array.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>

namespace atolldb {
namespace {

constexpr uint64_t kLargePageItems = (uint64_t{2} << 20) / sizeof(uint64_t);

class ZeroedArrays : public testing::Test {
 protected:
  ZeroedArrays() { std::printf("seed: none, nothing here is random\n"); }

  ZeroedArray<uint64_t> array_{4 * kLargePageItems};
};

TEST_F(ZeroedArrays, KeepItemsThatWereStoredBeforeLargePagesWerePreferred) {
  const uint64_t last = 2 * kLargePageItems - 1;
  array_[kLargePageItems] = 1;
  array_[last] = 2;
  array_.prefer_huge_pages(kLargePageItems, kLargePageItems);
  EXPECT_EQ(array_[kLargePageItems], 1u);
  EXPECT_EQ(array_[last], 2u);
  EXPECT_EQ(array_[last - 1], 0u);
}

TEST_F(ZeroedArrays, AreZeroInLargePagesAndAfterTheyWereCleared) {
  array_.prefer_huge_pages(kLargePageItems, kLargePageItems);
  array_.prefer_huge_pages(1, 1);  // smaller than a large page: no effect
  for (uint64_t i = 0; i < 4 * kLargePageItems; i += 511) {
    EXPECT_EQ(array_[i], 0u) << i;
    array_[i] = i + 1;
  }
  array_.clear();
  for (uint64_t i = 0; i < 4 * kLargePageItems; i += 511) EXPECT_EQ(array_[i], 0u) << i;
}

}  // namespace
}  // namespace atolldb
