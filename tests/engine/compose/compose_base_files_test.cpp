// Files of the base that a snapshot needs: counts, victims, damage (R67, R68).
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/compose/base_files.h"
#include "engine/gleaner/sample_victims.h"

namespace atolldb {
namespace {

/// Snapshots 1 to 3, with one file each. Storage 5 has pages in all of them, storage 6 in 1 and 3.
class BaseFilesTest : public testing::Test {
 protected:
  BaseFilesTest() {
    base_.id = 3;
    base_.storages = {{5, StorageType::mastertree, "t", SnapshotPointer::make(3, 0, 1), 0},
                      {6, StorageType::array, "a", SnapshotPointer::make(3, 0, 2), 0}};
    base_.files = {{1, 0, "/d", 100}, {2, 0, "/d", 100}, {3, 0, "/d", 100}};
    base_.live = {
        {5, 1, 0, 10, 0}, {5, 2, 0, 20, 3}, {5, 3, 0, 30, 0}, {6, 1, 0, 7, 0}, {6, 3, 0, 1, 0}};
    plan_.base = 3;
    plan_.snapshot = 4;
    plan_.files = base_.files;
    for (const SnapshotStorage& storage : base_.storages) {
      PlannedStorage planned;
      planned.id = storage.id;
      planned.type = storage.type;
      planned.base_root = storage.root;
      plan_.storages.push_back(planned);
    }
    next_.id = 4;
    next_.storages = base_.storages;
    next_.files = {{4, 0, "/d", 50}};
  }

  /// Checks that all files are kept, and that no live pages are counted.
  void expect_all_files() const {
    EXPECT_EQ(next_.files.size(), 4u);
    EXPECT_TRUE(next_.live.empty());
    EXPECT_EQ(next_.uncounted, (std::vector<uint32_t>{1, 2, 3, 4}));
  }

  SnapshotMetadata base_;
  SnapshotPlan plan_;
  SnapshotMetadata next_;
};

TEST_F(BaseFilesTest, CountsGrowByWhatIsWrittenAndShrinkByWhatIsReplaced) {
  const ComposedPages pages = {{{5, 4, 0, 4, 1}}, {{5, 2, 0, 3, 3}, {5, 3, 0, 1, 0}}, false};
  const auto wrong = add_base_files(plan_, base_, pages, next_);
  ASSERT_FALSE(wrong) << wrong->message;
  EXPECT_EQ(next_.live, (std::vector<LivePages>{{5, 1, 0, 10, 0},
                                                {5, 2, 0, 17, 0},
                                                {5, 3, 0, 29, 0},
                                                {5, 4, 0, 4, 1},
                                                {6, 1, 0, 7, 0},
                                                {6, 3, 0, 1, 0}}));
  EXPECT_EQ(next_.files.size(), 4u);
}

TEST_F(BaseFilesTest, TheCountsOfADroppedStorageGoWithIt) {
  next_.storages.erase(next_.storages.begin());  // storage 5
  ASSERT_FALSE(add_base_files(plan_, base_, {}, next_));
  EXPECT_EQ(next_.live, (std::vector<LivePages>{{6, 1, 0, 7, 0}, {6, 3, 0, 1, 0}}));
  ASSERT_EQ(next_.files.size(), 3u);
  EXPECT_EQ(next_.files[1].snapshot, 3u) << "snapshot 2 has no live page";
}

TEST_F(BaseFilesTest, MorePagesThanThereWereCannotBeReplacedSoNothingIsCounted) {
  const auto wrong = add_base_files(plan_, base_, {{}, {{5, 2, 0, 0, 4}}, false}, next_);
  ASSERT_TRUE(wrong);
  EXPECT_TRUE(wrong->message.contains("storage 5: 4 pages of snapshot 2")) << wrong->message;
  expect_all_files();
}

TEST_F(BaseFilesTest, AVictimWithLivePagesIsKept) {
  plan_.victims = {2};
  const ComposedPages pages = {{{5, 4, 0, 22, 0}}, {{5, 2, 0, 20, 2}}, false};
  const auto wrong = add_base_files(plan_, base_, pages, next_);
  ASSERT_TRUE(wrong);
  EXPECT_TRUE(wrong->message.contains("1 live pages remain in the files of snapshot 2"))
      << wrong->message;
  expect_all_files();
}

TEST_F(BaseFilesTest, WithDamageAllFilesRemainAndNoneIsCounted) {
  plan_.victims = {2};
  ASSERT_FALSE(add_base_files(plan_, base_, {{{5, 4, 0, 22, 0}}, {}, true}, next_));
  expect_all_files();
}

TEST_F(BaseFilesTest, ASalvageNeedsNoFileOfTheBase) {
  plan_.victims = {1, 2, 3};
  plan_.salvages = true;
  ASSERT_FALSE(add_base_files(plan_, base_, {{{5, 4, 0, 22, 0}}, {{5, 2, 0, 1, 0}}, false}, next_));
  EXPECT_EQ(next_.files.size(), 1u);
  EXPECT_EQ(next_.live, (std::vector<LivePages>{{5, 4, 0, 22, 0}}));
}

TEST_F(BaseFilesTest, UncountedFilesRemainUntilTheyAreVictims) {
  base_.live = {{5, 3, 0, 30, 0}};
  base_.uncounted = {1, 2};
  plan_.victims = {1};
  ASSERT_FALSE(add_base_files(plan_, base_, {{}, {{5, 1, 0, 99, 0}}, false}, next_));
  EXPECT_EQ(next_.uncounted, std::vector<uint32_t>{2});
  EXPECT_EQ(snapshots_of(next_.files), (std::vector<uint32_t>{2, 3, 4}));
}

TEST_F(BaseFilesTest, OnlyStoragesWithPagesInVictimsAreMarked) {
  plan_.victims = {2};
  EXPECT_EQ(mark_victims(base_, plan_), (std::map<uint32_t, uint64_t>{{5, 23}}));
  EXPECT_TRUE(plan_.storages[0].has_victims && plan_.storages[0].has_victims_below);
  EXPECT_FALSE(plan_.storages[1].has_victims);
  plan_.victims = {1};
  plan_.storages[0].has_victims_below = false;
  EXPECT_EQ(mark_victims(base_, plan_), (std::map<uint32_t, uint64_t>{{5, 10}, {6, 7}}));
  EXPECT_FALSE(plan_.storages[0].has_victims_below);
}

TEST_F(BaseFilesTest, AllStoragesAreMarkedIfAVictimHasNoCounts) {
  base_.live.clear();
  base_.uncounted = {1, 2, 3};
  plan_.victims = {1};
  const auto pages = mark_victims(base_, plan_);
  EXPECT_EQ(pages.at(5), kUnknownVictimPages);
  EXPECT_TRUE(plan_.storages[0].has_victims_below && plan_.storages[1].has_victims);
  EXPECT_FALSE(plan_.storages[1].has_victims_below) << "an array has no layers";
}

TEST_F(BaseFilesTest, StoragesWithoutPagesOfNextLayersAreKnown) {
  mark_victims(base_, plan_);
  EXPECT_TRUE(plan_.storages[0].has_next_layers);
  EXPECT_FALSE(plan_.storages[1].has_next_layers) << "an array";
  for (LivePages& live : base_.live) live.next_layers = 0;
  mark_victims(base_, plan_);
  EXPECT_FALSE(plan_.storages[0].has_next_layers);
  base_.uncounted = {1};
  mark_victims(base_, plan_);
  EXPECT_TRUE(plan_.storages[0].has_next_layers) << "a file without counts may hold some";
}

}  // namespace
}  // namespace atolldb
