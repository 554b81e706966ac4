// Pauses of a run: times in which no worker counts a commit.
#include "bench/job/pauses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/seed.h"

namespace atolldb::bench {
namespace {

TEST(PausesTest, APauseLastsFromOneCommitToTheNext) {
  PauseRecorder recorder;
  recorder.start(100, 50);
  recorder.commit(149);
  recorder.commit(200);
  EXPECT_EQ(recorder.finish(230), (Pauses{{149, 200}})) << "49 and 30 are too short";
}

TEST(PausesTest, TheShortestPauseCounts) {
  PauseRecorder recorder;
  recorder.start(100, 50);
  recorder.commit(150);
  EXPECT_EQ(recorder.finish(199), (Pauses{{100, 150}}));
}

TEST(PausesTest, AWorkerWithoutCommitsPausesForTheWholeTime) {
  PauseRecorder recorder;
  recorder.commit(5'000);  // in the warm-up
  recorder.start(10'000, 50);
  EXPECT_EQ(recorder.finish(20'000), (Pauses{{10'000, 20'000}}));
}

TEST(PausesTest, ACommitOfTheWarmUpIsNoPause) {
  PauseRecorder recorder;
  recorder.commit(5);
  recorder.commit(5'000'000);
  recorder.start(5'000'010, 50);
  EXPECT_EQ(recorder.finish(5'000'020), Pauses());
}

TEST(PausesTest, TheClusterPausesWhileAllWorkersPause) {
  EXPECT_EQ(common_pauses({{10, 100}}, {{50, 200}}), (Pauses{{50, 100}}));
  EXPECT_EQ(common_pauses({{10, 50}}, {{50, 200}}), Pauses()) << "a commit at 50";
  EXPECT_EQ(longest_pause({{10, 20}, {30, 75}, {80, 90}}), 45U);
  EXPECT_EQ(longest_pause({}), 0U);
}

/// Returns disjoint, ascending pauses within [0, limit).
Pauses random_pauses(std::mt19937_64& random, uint64_t limit) {
  Pauses pauses;
  for (uint64_t at = random() % 20; at < limit;) {
    const uint64_t end = std::min(limit, at + 1 + random() % 20);
    pauses.push_back({at, end});
    at = end + 1 + random() % 20;
  }
  return pauses;
}

bool is_in(const Pauses& pauses, uint64_t at) {
  return std::ranges::any_of(pauses, [&](Pause each) { return each.begin <= at && at < each.end; });
}

TEST(PausesTest, CommonPausesAgreeWithACheckOfEachTime) {
  std::mt19937_64 random(test::seed());
  constexpr uint64_t kLimit = 200;
  for (int round = 0; round < 200; ++round) {
    const Pauses a = random_pauses(random, kLimit);
    const Pauses b = random_pauses(random, kLimit);
    const Pauses common = common_pauses(a, b);
    EXPECT_EQ(common, common_pauses(b, a));
    for (uint64_t at = 0; at < kLimit; ++at) {
      ASSERT_EQ(is_in(common, at), is_in(a, at) && is_in(b, at)) << at;
    }
  }
}

}  // namespace
}  // namespace atolldb::bench
