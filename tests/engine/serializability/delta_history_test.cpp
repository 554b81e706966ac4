// Random transactions on trees with delta trees, checked for Adya's anomalies.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/engine/serializability/delta_history.h"
#include "tests/support/seed.h"

namespace atolldb::test {

inline void expect_sound_delta_history(bool is_layered, uint32_t keys) {
  const WorkloadOptions options{.seed = seed(), .attempts = 25, .keys = keys, .increments = false};
  const WorkloadResult result = run_with_delta_tree(4, rounds(120, 6'000), is_layered, options);
  std::printf("%s\n", result.text().c_str());
  EXPECT_TRUE(result.is_sound()) << result.text();
  EXPECT_GT(result.commits * 10, result.attempts);
}

TEST(DeltaHistory, OfIntegersIsSerializable) {
  for (const uint32_t keys : {20u, 200u}) expect_sound_delta_history(false, keys);
}

TEST(DeltaHistory, OfLayersIsSerializable) {
  for (const uint32_t keys : {20u, 200u}) expect_sound_delta_history(true, keys);
}

}  // namespace atolldb::test
