// Power cuts at named instants of commits and loggers, under load. Durable epochs are complete
// afterwards.
#include <gtest/gtest.h>

#include "tests/engine/hooks/mutant_guard.h"
#include "tests/engine/recovery/crash_instants.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

class CrashInstants : public testing::TestWithParam<Instant> {};

TEST_P(CrashInstants, LoseNothingThatWasDurableAndLeaveNoHalfEpoch) {
  EXPECT_EQ(crash_at(GetParam(), seed(), rounds(50, 1000)), "");
}

std::vector<Instant> all_instants() {
  std::vector<Instant> all;
  for (uint32_t i = 0; i < static_cast<uint32_t>(Instant::count_); ++i) {
    all.push_back(static_cast<Instant>(i));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Engine, CrashInstants, testing::ValuesIn(all_instants()),
                         [](const auto& tested) { return to_string(tested.param); });

TEST(CrashInstants, AreSeenToLoseDataWhenTheCutIsThatOfTheFastestLogger) {
  const MutantGuard guard(Mutant::cut_at_maximum);
  EXPECT_NE(crash_at(Instant::after_sync, seed(), 100), "");
}

TEST(CrashInstants, AreSeenToLoseDataWhenSyncsDoNothing) {
  EXPECT_NE(crash_at(Instant::before_durable, seed(), 100, true), "");
}

}  // namespace
}  // namespace atolldb::test
