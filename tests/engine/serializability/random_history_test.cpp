// Random transactions on threads and processes, checked for Adya's anomalies.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/engine/serializability/bodies.h"
#include "tests/support/seed.h"

namespace atolldb::test {

inline void expect_sound(const WorkloadResult& result) {
  std::printf("%s\n", result.text().c_str());
  EXPECT_TRUE(result.is_sound()) << result.text();
  // A history with hardly any commits proves nothing.
  EXPECT_GT(result.commits * 10, result.attempts);
}

inline WorkloadOptions random_options(uint32_t keys) {
#ifdef ATOLL_DCHECK
  const uint64_t attempts = rounds(1'500, 150'000);
#else
  const uint64_t attempts = rounds(6'000, 600'000);
#endif
  return {.seed = seed(), .attempts = attempts, .keys = keys, .increments = true};
}

TEST(RandomHistory, TwoNodesOfTwoThreadsOnFewKeysAreSerializable) {
  expect_sound(run_in_threads(2, 2, random_options(20)));
}

/// Nearly all transactions meet, and each failure leads to early locks (R104).
TEST(RandomHistory, TwoNodesOfTwoThreadsWithEarlyLocksAreSerializable) {
  for (const uint32_t keys : {4u, 20u}) {
    WorkloadOptions options = random_options(keys);
    options.attempts /= 2;
    options.lock_from_failures = 1;
    const WorkloadResult result = run_in_threads(2, 2, options);
    expect_sound(result);
    EXPECT_GT(result.early_locks, 0) << "no attempt has locked a record early";
  }
}

TEST(RandomHistory, FourNodesOfOneThreadOnManyKeysAreSerializable) {
  expect_sound(run_in_threads(4, 1, random_options(200)));
}

TEST(RandomHistory, TwoNodesOfFourThreadsAreSerializable) {
  expect_sound(run_in_threads(2, 4, random_options(60)));
}

TEST(RandomHistory, TwoProcessesOfTwoThreadsOnFewKeysAreSerializable) {
  expect_sound(run_in_processes(2, 2, random_options(20)));
}

TEST(RandomHistory, FourProcessesOnManyKeysAreSerializable) {
  expect_sound(run_in_processes(4, 1, random_options(200)));
}

}  // namespace atolldb::test
