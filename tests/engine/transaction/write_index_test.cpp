// Index from identities to entries of a write set, across growth and across the wrap-around of the
// stamps.
#include "engine/transaction/write_index.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>

#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// Runs several transactions, each with some of `capacity` entries. A search must find only the
/// entries of the current transaction.
template <typename Index>
void answers_like_a_map(Index& index, uint32_t capacity, uint32_t rounds) {
  std::mt19937_64 random(seed());
  for (uint32_t round = 0; round < rounds; ++round) {
    index.clear();
    std::map<uint64_t, uint32_t> expected;
    const auto count = static_cast<uint32_t>(random() % (capacity + 1));
    for (uint32_t entry = 0; entry < count; ++entry) {
      // Bits 20 and up select the slot, so some identities collide.
      const uint64_t identity = random() % 4 == 0 ? entry : random();
      if (!expected.try_emplace(identity, entry).second) break;
      index.insert(identity, entry);
    }
    for (uint32_t look = 0; look < 200; ++look) {
      const bool is_known = !expected.empty() && random() % 2 == 0;
      auto known = expected.begin();
      if (is_known) std::advance(known, random() % expected.size());
      const uint64_t identity = is_known ? known->first : random();
      const auto it = expected.find(identity);
      const uint32_t found = index.find(identity, [](uint32_t) { return true; });
      ASSERT_EQ(found, it == expected.end() ? WriteIndex::kNone : it->second) << round;
    }
  }
}

TEST(WriteIndex, FindsWhatWasInsertedSinceTheLastClear) {
  for (const uint32_t capacity : {1u, 63u, 64u, 65u, 256u, 257u, 8192u}) {
    WriteIndex index(capacity);
    answers_like_a_map(index, capacity, 30);
  }
}

/// With three stamps, an old entry would reappear under its reused stamp if the slots were not
/// cleared.
TEST(WriteIndex, ForgetsAllWhenStampsBeginAgain) {
  BasicWriteIndex<2> index(300);
  answers_like_a_map(index, 300, 60);
}

TEST(WriteIndex, FindsTheEntryThatMatches) {
  WriteIndex index(8);
  index.insert(7, 0);
  index.insert(7, 1);
  EXPECT_EQ(index.find(7, [](uint32_t entry) { return entry == 1; }), 1u);
  EXPECT_EQ(index.find(7, [](uint32_t entry) { return entry == 2; }), WriteIndex::kNone);
}

}  // namespace
}  // namespace atolldb::test
