// The choice of victims, as a function of the space of snapshots (R74).
#include "coordinator/snapshots/rewrite_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace atolldb {
namespace {

using Ids = std::vector<uint32_t>;
using Space = std::vector<SnapshotSpace>;

constexpr RewriteLimits kWide{.space_percent = 200, .pages = 1'000'000, .room_pages = 1'000'000};

TEST(RewritePolicyTest, WithinTheTargetThereAreNoVictims) {
  EXPECT_TRUE(choose_victims({}, kWide).victims.empty());
  const Space at_it = {{1, 20'000, 10'000}, {2, 1000, 500}};
  EXPECT_TRUE(choose_victims(at_it, kWide).victims.empty());
  const Space past_it = {{1, 20'000, 10'000}, {2, 1001, 500}};
  EXPECT_EQ(choose_victims(past_it, kWide).victims, Ids{2});
}

TEST(RewritePolicyTest, ThePagesOfTheNextSnapshotCountUpToAQuarterOfTheAllowedGarbage) {
  const Space space = {{1, 16'000, 8'000}, {2, 2'000, 2'000}};  // 18,000 pages, 10,000 of them live
  RewriteLimits limits = kWide;
  limits.coming_pages = 2'000;
  EXPECT_TRUE(choose_victims(space, limits).victims.empty());
  limits.coming_pages = 2'001;
  EXPECT_EQ(choose_victims(space, limits).victims, Ids{1});
  // The next snapshot will write 10,000 pages, as after a load. Only 2,500 of them count: a quarter
  // of the allowed garbage of 10,000 pages.
  limits.coming_pages = 10'000;
  EXPECT_TRUE(choose_victims({{1, 7'500, 2'500}, {2, 7'500, 7'500}}, limits).victims.empty() &&
              choose_victims({{1, 10'100, 10'000}}, limits).victims.empty());
  EXPECT_EQ(choose_victims({{1, 10'001, 2'500}, {2, 7'500, 7'500}}, limits).victims, Ids{1});
}

TEST(RewritePolicyTest, LittleGarbageIsNotWorthARewrite) {
  EXPECT_TRUE(choose_victims({{1, kLittleGarbagePages + 10, 10}}, kWide).victims.empty());
  EXPECT_EQ(choose_victims({{1, kLittleGarbagePages + 11, 10}}, kWide).victims, Ids{1});
}

TEST(RewritePolicyTest, TheLargestShareOfGarbageComesFirstAndNoMoreThanTheTargetNeeds) {
  const Space space = {{1, 1000, 400}, {2, 100, 1}, {3, 500, 250}, {4, 50, 50}};
  // The files have 1650 pages, 701 of them live. Snapshot 2 is copied first, which leaves 1551
  // pages. Snapshot 1 follows, which leaves 951.
  const RewriteChoice choice = choose_victims(space, kWide);
  EXPECT_EQ(choice.victims, (Ids{1, 2}));
  EXPECT_EQ(choice.pages, 401u);
  EXPECT_FALSE(choice.lacks_room);
}

TEST(RewritePolicyTest, TheLimitBoundsTheCopiedPagesExceptThoseOfASingleVictim) {
  const Space space = {{1, 1000, 100}, {2, 1000, 101}, {3, 1000, 102}};
  RewriteLimits limits = kWide;
  limits.pages = 201;
  EXPECT_EQ(choose_victims(space, limits).victims, (Ids{1, 2}));
  limits.pages = 200;
  EXPECT_EQ(choose_victims(space, limits).victims, Ids{1});
  limits.pages = 1;
  EXPECT_EQ(choose_victims(space, limits).victims, Ids{1}) << "a large file is rewritten at last";
}

TEST(RewritePolicyTest, WhatHasNoRoomIsNotCopied) {
  const Space space = {{1, 1000, 100}, {2, 1000, 40}};
  RewriteLimits limits = kWide;
  limits.room_pages = 140;
  EXPECT_EQ(choose_victims(space, limits).victims, (Ids{1, 2}));
  limits.room_pages = 139;
  EXPECT_EQ(choose_victims(space, limits).victims, Ids{2});
  EXPECT_FALSE(choose_victims(space, limits).lacks_room);
  limits.room_pages = 39;
  EXPECT_TRUE(choose_victims(space, limits).victims.empty());
  EXPECT_TRUE(choose_victims(space, limits).lacks_room);
  EXPECT_FALSE(choose_victims({{1, 100, 100}}, limits).lacks_room) << "nothing is due";
}

TEST(RewritePolicyTest, UncountedSnapshotsAreCopiedOldestFirstWithinTheLimit) {
  const Space space = {
      {3, 100, 100, false}, {5, 100, 100, false}, {7, 100, 100, false}, {9, 100, 100, true}};
  RewriteLimits limits = kWide;
  limits.pages = 250;
  EXPECT_EQ(choose_victims(space, limits).victims, (Ids{3, 5}));
}

TEST(RewritePolicyTest, OfTooManySnapshotsTheSmallestAreMerged) {
  Space space;
  for (uint32_t id = 1; id < kManySnapshots; ++id) space.push_back({id, 100 + id, 100 + id});
  EXPECT_TRUE(choose_victims(space, kWide).victims.empty()) << "one fewer";
  space.push_back({kManySnapshots, 1, 1});
  const RewriteChoice choice = choose_victims(space, kWide);
  ASSERT_EQ(choice.victims.size(), kManySnapshots / 2);
  EXPECT_EQ(choice.victims.front(), 1u);
  EXPECT_EQ(choice.victims.back(), kManySnapshots);
  EXPECT_EQ(std::ranges::count(choice.victims, 20u), 0) << "a larger one";
}

TEST(RewritePolicyTest, AMergeHasAtLeastFourVictims) {
  const Space space(40, {0, 100, 100});
  Space numbered = space;
  for (uint32_t i = 0; i < numbered.size(); ++i) numbered[i].snapshot = i + 1;
  RewriteLimits limits = kWide;
  limits.pages = 400;
  EXPECT_EQ(choose_victims(numbered, limits).victims, (Ids{1, 2, 3, 4}));
  limits.pages = 399;
  EXPECT_TRUE(choose_victims(numbered, limits).victims.empty());
}

/// From kMostSnapshots snapshots on, a merge may copy more pages than the limit. Otherwise a large
/// database could have a file for each half of the limit.
TEST(RewritePolicyTest, TheMostSnapshotsAreMergedPastTheLimit) {
  Space space;
  for (uint32_t id = 1; id < kMostSnapshots; ++id) space.push_back({id, 100, 100});
  RewriteLimits limits = kWide;
  limits.pages = 399;
  EXPECT_TRUE(choose_victims(space, limits).victims.empty()) << "one fewer";
  space.push_back({kMostSnapshots, 100, 100});
  const RewriteChoice choice = choose_victims(space, limits);
  EXPECT_EQ(choice.victims, (Ids{1, 2, 3, 4}));
  EXPECT_EQ(choice.pages, 400u);
  limits.room_pages = 399;
  EXPECT_TRUE(choose_victims(space, limits).victims.empty()) << "no room";
  limits.room_pages = kWide.room_pages;
  space.push_back({kMostSnapshots + 1, 100, 100});
  EXPECT_EQ(choose_victims(space, limits).victims, (Ids{1, 2, 3, 4, 5})) << "one more";
}

TEST(RewritePolicyTest, NoVictimOfAMergeIsLargerThanAllSmallerOnesTogether) {
  Space space;
  for (uint32_t id = 1; id <= 40; ++id) {
    const uint64_t pages = id <= 6 ? 10 : uint64_t{61} << (id - 7);
    space.push_back({id, pages, pages});
  }
  EXPECT_EQ(choose_victims(space, kWide).victims, (Ids{1, 2, 3, 4, 5, 6}));
  space[5] = {6, 11, 11};  // now these six have 61 pages, as many as the seventh
  EXPECT_EQ(choose_victims(space, kWide).victims.size(), 20u);
}

/// Each snapshot adds some pages, and no page ever becomes garbage. The number of snapshots stays
/// bounded, and a page is copied a few times only.
TEST(RewritePolicyTest, MergesCostTheLogarithmOfTheSize) {
  Space space;
  uint64_t copied = 0;
  constexpr uint64_t kSnapshots = 5000;
  constexpr uint64_t kPagesEach = 10;
  for (uint32_t id = 1; id <= kSnapshots; ++id) {
    const RewriteChoice choice = choose_victims(space, kWide);
    copied += choice.pages;
    std::erase_if(space, [&](const SnapshotSpace& each) {
      return std::ranges::binary_search(choice.victims, each.snapshot);
    });
    space.push_back({id, kPagesEach + choice.pages, kPagesEach + choice.pages});
    ASSERT_LE(space.size(), kManySnapshots);
  }
  EXPECT_LE(copied, kSnapshots * kPagesEach * 5);
}

/// Constant content under random updates. With the victims that the policy chooses, the files never
/// exceed the target by more than the pages that one snapshot writes.
TEST(RewritePolicyTest, ConstantContentStaysWithinTheTarget) {
  std::mt19937_64 random(test::seed());
  constexpr uint32_t kPages = 2000;
  std::vector<uint32_t> home(kPages, 1);  // by page, the snapshot that has the page
  std::vector<uint64_t> stored = {0, kPages};
  uint64_t copied = 0;
  uint64_t changed = 0;
  for (uint32_t id = 2; id < 400; ++id) {
    Space space;
    for (uint32_t other = 1; other < id; ++other) {
      const auto live = static_cast<uint64_t>(std::ranges::count(home, other));
      if (live != 0) space.push_back({other, stored[other], live});
    }
    const RewriteChoice choice = choose_victims(space, kWide);
    copied += choice.pages;
    uint64_t written = 0;
    for (uint32_t& page : home) {
      const bool is_changed = random() % 20 == 0;
      changed += is_changed ? 1 : 0;
      if (!is_changed && !std::ranges::binary_search(choice.victims, page)) continue;
      page = id;
      ++written;
    }
    stored.push_back(written);
    uint64_t sum = 0;
    for (uint32_t other = 1; other <= id; ++other) {
      if (std::ranges::count(home, other) != 0) sum += stored[other];
    }
    ASSERT_LE(sum, 2 * kPages + kPages / 10) << "snapshot " << id;
  }
  EXPECT_LE(copied, 3 * changed);
}

TEST(RewritePolicyTest, SpaceIsThatOfTheFilesWithoutHeaders) {
  SnapshotMetadata snapshot;
  snapshot.id = 3;
  snapshot.storages = {{5, StorageType::array, "a", {}, 0}};
  snapshot.files = {{1, 0, "/d", 11}, {3, 0, "/d", 6}, {1, 255, "/d", 2}};
  snapshot.live = {{5, 3, 0, 2, 1}};
  snapshot.uncounted = {1};
  const Space space = space_of(snapshot);
  EXPECT_EQ(space, (Space{{1, 11, 11, false}, {3, 5, 3, true}}));
  EXPECT_EQ(sums_of(space).amplification_percent(), 1600u / 14);
  EXPECT_EQ(sums_of({}).amplification_percent(), 100u);
}

}  // namespace
}  // namespace atolldb
