// Sorting of write sets into universal order (R22), for sizes that cover every sorting method and
// their boundaries.
#include "engine/transaction/sort_writes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// Makes entries with different names, in any order. The tests sort only the first ones. The others
/// are past the end of the write set, and must stay unchanged.
std::vector<WriteEntry> make_entries(std::mt19937_64& random, uint32_t count) {
  const uint64_t step = 1 + random() % 1000;
  std::vector<WriteEntry> entries(count);
  for (uint32_t i = 0; i < count; ++i) {
    entries[i].record = UniversalName(uint64_t{i} * step + random() % step);
    entries[i].log_offset = i;
    entries[i].payload_at = static_cast<uint16_t>(random());
  }
  std::ranges::shuffle(entries, random);
  return entries;
}

TEST(SortWrites, OrdersSetsOfEverySize) {
  std::mt19937_64 random(seed());
  const uint32_t room = kMostMerged + 5;
  for (uint32_t count = 0; count <= room; ++count) {
    std::vector<WriteEntry> entries = make_entries(random, room);
    std::vector<WriteEntry> expected = entries;
    std::sort(expected.begin(), expected.begin() + count, by_record);
    sort_writes(entries.data(), count);
    for (uint32_t i = 0; i < room; ++i) {
      ASSERT_EQ(entries[i].record, expected[i].record) << i << " of " << count;
      ASSERT_EQ(entries[i].log_offset, expected[i].log_offset) << i << " of " << count;
      ASSERT_EQ(entries[i].payload_at, expected[i].payload_at) << i << " of " << count;
    }
  }
}

TEST(SortWrites, TheLargestNamesComeLast) {
  for (const uint32_t count : {7u, 8u, 31u, 48u, 49u, 384u, 385u}) {
    std::vector<WriteEntry> entries(count);
    for (uint32_t i = 0; i < count; ++i) {
      entries[i].record = UniversalName(((uint64_t{1} << 51) - 1) - i);
    }
    sort_writes(entries.data(), count);
    EXPECT_TRUE(std::ranges::is_sorted(entries, by_record)) << count;
  }
}

}  // namespace
}  // namespace atolldb::test
