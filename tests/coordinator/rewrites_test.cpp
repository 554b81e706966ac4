// When snapshots have victims: urgency, room, and the pauses after rewrites that freed nothing
// (R74).
#include "coordinator/snapshots/rewrites.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "shared/base/pointer.h"

namespace atolldb {
namespace {

using Ids = std::vector<uint32_t>;

/// Snapshot 1 has much garbage, snapshot 2 has none.
class RewritesTest : public testing::Test {
 protected:
  RewritesTest() {
    newest_.id = 2;
    newest_.storages = {{5, StorageType::array, "a", {}, 0}};
    newest_.files = {{1, 0, "/d", 1001}, {2, 0, "/d", 101}};
    newest_.live = {{5, 1, 0, 50, 0}, {5, 2, 0, 100, 0}};
  }
  Ids choose(bool lacks_log_files = false, bool pool_is_low = false) {
    return rewrites_.choose(newest_,
                            {.lacks_log_files = lacks_log_files, .pool_is_low = pool_is_low});
  }
  uint64_t copied() const { return metrics_.pages_rewritten.get(); }

  Config::Gleaner config_;
  SnapshotMetrics metrics_;
  uint64_t room_ = uint64_t{1} << 40;
  Rewrites rewrites_{config_, metrics_, make_silent_logger("snapshots"),
                     [this] { return Result<uint64_t>(room_); }};
  SnapshotMetadata newest_;
};

TEST_F(RewritesTest, GarbageIsCopiedAndCounted) {
  EXPECT_EQ(choose(), Ids{1});
  SnapshotMetadata made;
  made.files = {{2, 0, "/d", 101}, {3, 0, "/d", 51}};
  rewrites_.record({1}, &made);
  EXPECT_EQ(copied(), 50u);
  EXPECT_EQ(choose(), Ids{1}) << "no pause after success";
}

/// The policy expects the next snapshot to write as much as the latest ones. Copies do not count.
TEST_F(RewritesTest, TheSpaceOfTheNextSnapshotIsExpected) {
  newest_.files = {{1, 0, "/d", 18'001}, {2, 0, "/d", 1}};
  newest_.live = {{5, 1, 0, 10'000, 0}};
  SnapshotMetadata made;
  made.id = 3;
  made.files = {{3, 0, "/d", 2'001}};
  rewrites_.record({}, &made);
  EXPECT_EQ(choose(), Ids{}) << "2,000 pages: just the target";
  made.files = {{3, 0, "/d", 2'002}};
  rewrites_.record({}, &made);
  EXPECT_EQ(choose(), Ids{1});
  made.files = {{3, 0, "/d", 10'001}};
  rewrites_.record({1}, &made);
  EXPECT_EQ(choose(), Ids{}) << "10,000 pages were copies, and 1,751 are left of the estimate";
}

TEST_F(RewritesTest, ASnapshotForALoggerWithoutRoomHasNoVictims) {
  for (int i = 0; i < 50; ++i) EXPECT_EQ(choose(true), Ids{});
}

TEST_F(RewritesTest, SnapshotsForALowPoolHaveNoneExceptTheLastOfMany) {
  newest_.files = {{1, 0, "/d", 1701}, {2, 0, "/d", 101}};
  newest_.live = {{5, 1, 0, 500, 0}, {5, 2, 0, 100, 0}};  // 3 stored pages for each live page
  for (uint32_t i = 1; i < kUrgentSnapshots; ++i) EXPECT_EQ(choose(false, true), Ids{}) << i;
  EXPECT_EQ(choose(false, true), Ids{1});
  EXPECT_EQ(choose(false, true), Ids{});
  EXPECT_EQ(choose(), Ids{1});
  EXPECT_EQ(choose(false, true), Ids{}) << "the count begins again";
}

TEST_F(RewritesTest, SnapshotsForALowPoolHaveSomeIfTheFilesAreMuchTooLarge) {
  newest_.files = {{1, 0, "/d", 1702}, {2, 0, "/d", 107}};
  newest_.live = {{5, 1, 0, 500, 0}, {5, 2, 0, 100, 0}};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(choose(false, true), Ids{1}) << "above 300 %";
}

/// A database larger than its pools: each snapshot is urgent, and replaces a quarter of all pages,
/// at random. The files must stay within a small multiple of the live pages.
TEST_F(RewritesTest, FilesStayBoundedWhileAllSnapshotsAreUrgent) {
  constexpr uint64_t kPages = 1'600'000;  // 6 GiB
  struct File {
    uint32_t id;
    uint64_t stored;
    double live;
  };
  std::vector<File> files = {{1, kPages, kPages}};
  uint64_t most = 0;
  for (uint32_t id = 2; id < 300; ++id) {
    newest_.id = id - 1;
    newest_.files.clear();
    newest_.live.clear();
    uint64_t stored = 0;
    for (const File& file : files) {
      newest_.files.push_back({file.id, 0, "/d", file.stored + 1});
      newest_.live.push_back({5, file.id, 0, static_cast<uint64_t>(file.live), 0});
      stored += file.stored;
    }
    most = std::max(most, stored);
    const Ids victims = choose(false, true);
    double written = 0;
    double copied = 0;
    for (File& file : files) {
      const bool is_victim = std::ranges::binary_search(victims, file.id);
      const double replaced = file.live / 4;
      written += replaced;
      if (is_victim) copied += file.live - replaced;
      file.live = is_victim ? 0 : file.live - replaced;
    }
    std::erase_if(files, [](const File& file) { return file.live < 1; });
    files.push_back({id, static_cast<uint64_t>(written + copied), written + copied});
    SnapshotMetadata made;
    made.id = id;
    for (const File& file : files) made.files.push_back({file.id, 0, "/d", file.stored + 1});
    rewrites_.record(victims, &made);
  }
  EXPECT_LT(most, 7 * kPages / 2) << "3.5 times the live pages";
}

TEST_F(RewritesTest, AFailureIsFollowedByOrdinarySnapshots) {
  EXPECT_EQ(choose(), Ids{1});
  rewrites_.record({1}, nullptr);
  for (uint32_t i = 0; i < kSnapshotsAfterFailure; ++i) EXPECT_EQ(choose(), Ids{}) << i;
  EXPECT_EQ(choose(), Ids{1});
  rewrites_.record({}, nullptr);
  EXPECT_EQ(choose(), Ids{1}) << "it had no victims, so it did not fail because of them";
}

TEST_F(RewritesTest, VictimsThatAreStillNeededDelayTheNextRewrite) {
  EXPECT_EQ(choose(), Ids{1});
  rewrites_.record({1}, &newest_);  // the newest snapshot still lists files of the victim
  EXPECT_EQ(copied(), 0u);
  for (uint32_t i = 0; i < kSnapshotsAfterDamage; ++i) EXPECT_EQ(choose(), Ids{}) << i;
  EXPECT_EQ(choose(), Ids{1});
}

/// Each rewrite leaves copies that are garbage, so their number must grow slowly.
TEST_F(RewritesTest, VictimsThatStayNeededAreCopiedARisingNumberOfSnapshotsApart) {
  uint32_t rewrites = 0;
  constexpr uint32_t kSnapshots = 100'000;
  for (uint32_t i = 0; i < kSnapshots; ++i) {
    if (choose().empty()) continue;
    rewrites_.record({1}, &newest_);
    ++rewrites;
  }
  EXPECT_EQ(rewrites, 12u) << "32 * (2^11 - 1) snapshots are between the first twelve";
  while (choose().empty()) {
  }
  SnapshotMetadata made;
  made.files = {{3, 0, "/d", 51}};
  rewrites_.record({1}, &made);
  EXPECT_EQ(choose(), Ids{1}) << "no pause after success";
  rewrites_.record({1}, &newest_);
  for (uint32_t i = 0; i < kSnapshotsAfterDamage; ++i) EXPECT_EQ(choose(), Ids{}) << i;
  EXPECT_EQ(choose(), Ids{1}) << "the pauses begin again after success";
}

TEST_F(RewritesTest, TheLongestPauseIsBounded) {
  uint32_t pause = 0;
  for (int i = 0; i <= 17; ++i) {
    for (pause = 0; choose().empty();) ++pause;
    rewrites_.record({1}, &newest_);
    ASSERT_LE(pause, kMostSnapshotsAfterDamage);
  }
  EXPECT_EQ(pause, kMostSnapshotsAfterDamage) << "after 15 doublings";
}

TEST_F(RewritesTest, WithoutRoomNothingIsCopiedAndTheStatusSaysSo) {
  room_ = kRewriteMargin + 50 * kPageBytes;
  EXPECT_EQ(choose(), Ids{1});
  EXPECT_FALSE(rewrites_.status().at("lacks_room"));
  --room_;
  EXPECT_EQ(choose(), Ids{});
  EXPECT_TRUE(rewrites_.status().at("lacks_room"));
  room_ = 0;
  EXPECT_EQ(choose(), Ids{});
  room_ = uint64_t{1} << 40;
  EXPECT_EQ(choose(), Ids{1});
  EXPECT_FALSE(rewrites_.status().at("lacks_room"));
}

TEST_F(RewritesTest, TheStatusHasTheSpaceOfTheNewestSnapshot) {
  rewrites_.record_space(newest_);
  EXPECT_EQ(rewrites_.status().at("live_bytes"), 150 * kPageBytes);
  EXPECT_EQ(rewrites_.status().at("percent"), 1100 * 100 / 150);
  EXPECT_EQ(rewrites_.status().at("target_percent"), 200);
}

}  // namespace
}  // namespace atolldb
