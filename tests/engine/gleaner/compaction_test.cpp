// Records that compaction may elide, and records that it must keep (R35).
#include "engine/gleaner/gleaned_record.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/gleaner/compaction_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test::compaction {
namespace {

using Ordinals = std::vector<uint64_t>;

void expect_kept(const std::vector<Change>& changes, const Ordinals& ordinals) {
  EXPECT_EQ(kept(changes), ordinals);
  EXPECT_EQ(merged(changes), ordinals);
}

TEST(Compaction, AnUpdateCoversEarlierOnesOfNoLargerRange) {
  expect_kept({update(0, 8), update(0, 8), update(0, 8)}, {2});
  expect_kept({update(4, 2), update(0, 8)}, {1});
  expect_kept({update(0, 8), update(0, 4)}, {0, 1});
  expect_kept({update(0, 8), update(4, 8)}, {0, 1});
  expect_kept({update(0, 4), update(4, 4)}, {0, 1});
}

TEST(Compaction, AnUpdateCoversNeitherInsertNorErase) {
  expect_kept({kInsert, update(0, 16)}, {0, 1});
  expect_kept({kErase, update(0, 16)}, {0, 1});
}

TEST(Compaction, AnInsertOrEraseCoversAllBefore) {
  expect_kept({update(0, 16), kInsert, kErase, kInsert}, {3});
  EXPECT_EQ(kept({kInsert, update(0, 8), kErase}), Ordinals{2});
  EXPECT_EQ(kept({update(0, 16), update(20, 4), kErase}), Ordinals{2});
}

TEST(Compaction, TheLastEraseSurvivesAlone) {
  expect_kept({kErase}, {0});
  expect_kept({kErase, kErase}, {1});
  expect_kept({kInsert, kErase}, {1});
}

TEST(Compaction, RecordsAfterTheLastInsertStay) {
  expect_kept({update(0, 4), kInsert, update(0, 4), update(8, 4)}, {1, 2, 3});
  EXPECT_EQ(kept({kInsert, update(0, 4), update(8, 4), update(0, 4)}), (Ordinals{0, 2, 3}));
}

TEST(Compaction, ManyDifferentUpdatesOfAKeyAreKept) {
  std::vector<Change> changes;
  Ordinals all;
  for (uint16_t i = 0; i < 40; ++i) {
    changes.push_back(update(static_cast<uint16_t>(8 * i), 8));
    all.push_back(i);
  }
  expect_kept(changes, all);
  // An erase covers even more updates than the compaction remembers.
  changes.push_back(kErase);
  EXPECT_EQ(kept(changes), Ordinals{40});
}

TEST(Compaction, KeysAreNotMixedUp) {
  for (const size_t key_bytes : {7u, 8u, 15u, 16u, 30u}) {
    EXPECT_EQ(kept({{LogType::insert, 0, 8, 1},
                    {LogType::erase, 0, 0, 2},
                    {LogType::erase, 0, 0, 3},
                    {LogType::update, 0, 8, 1},
                    {LogType::insert, 0, 8, 2}},
                   key_bytes),
              (Ordinals{0, 3, 4, 2}));
  }
}

TEST(Compaction, AppendsAllStay) {
  const Change append = {LogType::append, 0, 8};
  expect_kept({append, append, append}, {0, 1, 2});
}

TEST(Compaction, KeepsWhatAdditionsNeed) { EXPECT_EQ(keeps_what_additions_need(), ""); }

TEST(Compaction, LeavesEveryRecordAsAllItsChangesDo) {
  EXPECT_EQ(leaves_records_as_their_changes_do(rounds(2000, 200'000)), "");
}

}  // namespace
}  // namespace atolldb::test::compaction
