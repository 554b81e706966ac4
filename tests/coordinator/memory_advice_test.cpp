// Which part of a node's memory should get more: the snapshot cache or the page pool.
#include "coordinator/memory_advice.h"

#include <gtest/gtest.h>

namespace atolldb::test {
namespace {

constexpr uint64_t kPoolBytes = uint64_t{512} << 20;
constexpr uint64_t kCacheBytes = uint64_t{64} << 20;

MemoryAdvice advise(uint64_t ghost_hits, uint64_t delay_ms) {
  return advise_memory({.pool_bytes = kPoolBytes,
                        .cache_bytes = kCacheBytes,
                        .ghost_hits = ghost_hits,
                        .page_delay_ns = delay_ms * 1'000'000});
}

TEST(MemoryAdvice, ComparesTheWaitsThatOneMoreMibWouldSave) {
  const MemoryAdvice advice = advise(1'600, 5'120);
  EXPECT_DOUBLE_EQ(advice.cache_us_per_mib, 1'600 * 100 / 8.0);  // 8 MiB: an eighth of the cache
  EXPECT_DOUBLE_EQ(advice.pool_us_per_mib, 10'000);
  EXPECT_EQ(advice.more, MoreMemory::cache);
  EXPECT_EQ(advise(1'600, 51'200).more, MoreMemory::pool);
  EXPECT_EQ(advise(1'600, 10'240).more, MoreMemory::either) << "equal";
  EXPECT_EQ(advise(1'600, 10'300).more, MoreMemory::either) << "nearly equal";
}

TEST(MemoryAdvice, SaysNothingAboutShortWaits) {
  EXPECT_EQ(advise(0, 0).more, MoreMemory::none);
  EXPECT_EQ(advise(70, 400).more, MoreMemory::none);
  EXPECT_EQ(advise(100, 0).more, MoreMemory::cache);
  EXPECT_EQ(advise(0, 600).more, MoreMemory::pool);
}

TEST(MemoryAdvice, SaysNothingWithoutACache) {
  const MemoryAdvice advice =
      advise_memory({.pool_bytes = kPoolBytes, .page_delay_ns = 1'000'000'000'000});
  EXPECT_EQ(advice.more, MoreMemory::none);
  EXPECT_EQ(advice.pool_us_per_mib, 0);
}

}  // namespace
}  // namespace atolldb::test
