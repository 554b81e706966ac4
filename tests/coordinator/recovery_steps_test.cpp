// Steps of a recovery without enough space: it tries everything at once, then parts.
#include "coordinator/snapshots/recovery_steps.h"

#include <gtest/gtest.h>

namespace atolldb::test {
namespace {

PlannedStream stream(uint64_t start_epoch, uint64_t last_epoch) {
  PlannedStream stream;
  stream.stream.start_epoch = start_epoch;
  stream.last_epoch = last_epoch;
  return stream;
}

TEST(RecoverySteps, TryAllAtOnceFirstThenHalvesThenTwiceAsMuchAfterEachThatFits) {
  RecoverySteps steps(1000);
  EXPECT_EQ(steps.epoch(), 1000u);
  EXPECT_TRUE(steps.is_last());
  ASSERT_TRUE(steps.shrink(200));
  EXPECT_EQ(steps.epoch(), 600u);
  ASSERT_TRUE(steps.shrink(200));
  EXPECT_EQ(steps.epoch(), 400u);
  EXPECT_FALSE(steps.is_last());
  steps.advance(200, 400);
  EXPECT_EQ(steps.epoch(), 800u);
  ASSERT_TRUE(steps.shrink(400));
  EXPECT_EQ(steps.epoch(), 600u);
  steps.advance(400, 600);
  EXPECT_EQ(steps.epoch(), 1000u);
  EXPECT_TRUE(steps.is_last());
}

TEST(RecoverySteps, EndWhenOneEpochAloneFindsNoRoom) {
  RecoverySteps steps(1000);
  while (steps.epoch() > 11) ASSERT_TRUE(steps.shrink(10));
  EXPECT_EQ(steps.epoch(), 11u);
  EXPECT_FALSE(steps.shrink(10));
}

TEST(RecoverySteps, EndAfterTooManyFailures) {
  RecoverySteps steps(uint64_t{1} << 40);
  uint64_t recovered = 0;
  uint32_t failures = 0;
  while (steps.shrink(recovered)) {
    ++failures;
    const uint64_t before = recovered;
    recovered = steps.epoch();
    steps.advance(before, recovered);
    if (steps.epoch() <= recovered + 1) break;
  }
  EXPECT_LE(failures, 256u);
}

TEST(RecoverySteps, GoOnAfterAGapBetweenIncarnationsWithPartsOfTheSameLength) {
  const std::vector<PlannedStream> all = {stream(1, 100), stream(1000, 2000)};
  RecoverySteps steps(2000);
  while (steps.epoch() > 100) ASSERT_TRUE(steps.shrink(0));
  const uint64_t width = steps.epoch();
  ASSERT_LT(width, 100u);
  steps.advance(0, width);
  ASSERT_GE(steps.epoch(), 100u);
  // The first incarnation is recovered. The next part ends neither in the gap nor at the end of the
  // second incarnation.
  const uint64_t before = steps.epoch();
  const uint64_t recovered = recovered_epoch({all[1]}, before, 2000);
  ASSERT_EQ(recovered, 999u);
  steps.advance(width, recovered);
  EXPECT_EQ(steps.epoch(), 999 + 2 * (before - width));
  EXPECT_FALSE(steps.is_last());
}

TEST(RecoverySteps, TakeOfEachStreamWhatThePartHas) {
  const std::vector<PlannedStream> all = {stream(10, 20), stream(21, 40), stream(41, 60)};
  EXPECT_EQ(streams_up_to(all, 60).size(), 3u);
  const auto part = streams_up_to(all, 30);
  ASSERT_EQ(part.size(), 2u);
  EXPECT_EQ(part[0].last_epoch, 20u);
  EXPECT_EQ(part[1].last_epoch, 30u);
  EXPECT_EQ(streams_up_to(all, 20).size(), 1u);
  EXPECT_EQ(recovered_epoch(all, std::nullopt, 60), 9u);
  EXPECT_EQ(recovered_epoch(all, 15, 60), 15u);
  EXPECT_EQ(recovered_epoch({}, std::nullopt, 60), 60u);
}

}  // namespace
}  // namespace atolldb::test
