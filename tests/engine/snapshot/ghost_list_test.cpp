// Ghosts of evicted pages: which misses a larger cache would have saved.
#include "engine/snapshot/ghost_list.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <list>
#include <random>
#include <unordered_map>

#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

SnapshotPointer page_of(uint64_t number) {
  return SnapshotPointer::make(7, 0, static_cast<uint32_t>(number + 1));
}

TEST(GhostList, CountsMissesOfPagesThatWereEvictedLately) {
  constexpr uint64_t kFrames = 800;
  GhostList ghosts(kFrames);
  for (uint64_t i = 0; i < 200; ++i) ghosts.add(page_of(i), i);
  EXPECT_EQ(ghosts.saved_by_more(page_of(199), 200, kFrames), 1u);
  EXPECT_EQ(ghosts.saved_by_more(page_of(199), 200, kFrames), 0u) << "it was counted";
  EXPECT_EQ(ghosts.saved_by_more(page_of(101), 200, kFrames), 1u) << "a hundredth eviction";
  EXPECT_EQ(ghosts.saved_by_more(page_of(99), 200, kFrames), 0u) << "a longer time ago";
  EXPECT_EQ(ghosts.saved_by_more(page_of(500), 200, kFrames), 0u) << "never evicted";
  EXPECT_EQ(ghosts.saved_by_more(page_of(150), 200, 8 * 10), 0u) << "a small cache now";
}

/// A cache that evicts the page that was used least lately, with uniform accesses. The hits of a
/// larger one are known: each further frame saves the same number of misses.
TEST(GhostList, EstimatesTheMissesOfALargerCacheFromASample) {
  constexpr uint64_t kFrames = uint64_t{1} << 18;  // the sample has one page of 32
  constexpr uint64_t kPages = kFrames * 2;
  std::mt19937_64 random(seed());
  GhostList ghosts(kFrames);
  std::list<uint64_t> order;  // of use, the latest first
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> cached;
  uint64_t evictions = 0;
  uint64_t misses = 0;
  uint64_t saved = 0;
  for (uint64_t i = 0; i < 6 * kFrames; ++i) {
    const uint64_t page = random() % kPages;
    const auto found = cached.find(page);
    if (found != cached.end()) {
      order.splice(order.begin(), order, found->second);
      continue;
    }
    if (order.size() == kFrames) {
      ghosts.add(page_of(order.back()), evictions++);
      cached.erase(order.back());
      order.pop_back();
    }
    order.push_front(page);
    cached[page] = order.begin();
    if (evictions < kFrames) continue;
    ++misses;
    saved += ghosts.saved_by_more(page_of(page), evictions, kFrames);
  }
  // Half of the pages are cached, so an eighth more frames would save an eighth of the misses. The
  // estimate is lower, because some of the last evicted pages are in the cache again.
  const double part = static_cast<double>(saved) / static_cast<double>(misses);
  EXPECT_NEAR(part, 0.117, 0.015) << saved << " of " << misses;
}

}  // namespace
}  // namespace atolldb::test
