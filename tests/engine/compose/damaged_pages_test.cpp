// Snapshots over damaged pages (R56): random histories, held records, stand-ins and salvage.
#include "tests/engine/compose/damaged_pages.h"

#include <gtest/gtest.h>

#include "tests/engine/compose/damage_rules.h"
#include "tests/engine/compose/random_captures.h"

namespace atolldb::test {
namespace {

TEST(DamagedPages, OfTreesStopNoSnapshotAndLoseNothingForGood) {
  EXPECT_GT(damaged_tree_rounds(rounds(20, 500), 1500), 0u);
}

TEST(DamagedPages, OfArraysStopNoSnapshotAndLoseNothingForGood) {
  EXPECT_GT(damaged_array_rounds(rounds(12, 300), 20'000), 0u);
}

TEST(DamagedPages, OfSequentialStoragesStopNoSnapshotAndLoseNothingForGood) {
  EXPECT_GT(damaged_sequential_rounds(rounds(15, 300), 1000), 0u);
}

/// In a rewrite, the first read of the root page fails and a second read succeeds. No append is
/// lost.
TEST(DamagedPages, OfSequentialRootsThatCanBeReadAgainAmidARewriteLoseNothing) {
  SnapshotStage stage(StorageType::sequential);
  const auto take = [&](uint64_t epoch) {
    const std::string key = big_endian(epoch) + big_endian(1);
    const auto combined =
        stage.round({{LogType::append, key, 0, "of " + std::to_string(epoch), Vid::make(epoch, 1)}},
                    {""}, epoch);
    ASSERT_TRUE(combined) << combined.error().message;
  };
  ASSERT_NO_FATAL_FAILURE(take(3));
  PageDamage damage(stage);
  const SnapshotPointer root = stage.storage.base_root;
  damage.flip(stage.path(root.node(), root.snapshot()), root.page());
  stage.rewrites = true;
  stage.before_combine = [&] { damage.repair(); };
  ASSERT_NO_FATAL_FAILURE(take(4));
  ASSERT_EQ(stage.unreadable.size(), 2u) << "each node reports its own runs";
  ASSERT_NO_FATAL_FAILURE(take(5));
  uint64_t found = 0;
  const auto totals = stage.walk([&](const WalkedRecord&) {
    ++found;
    return Result<void>();
  });
  ASSERT_TRUE(totals) << totals.error().message;
  EXPECT_EQ(found, 3u);
}

/// A salvage in which only one node cannot read the root page loses the runs of that node, and
/// reports them.
TEST(DamagedPages, OfSequentialRootsThatOneNodeCannotReadAreReportedByThatNode) {
  for (const uint32_t unlucky : {0u, 1u}) {
    SnapshotStage stage(StorageType::sequential);
    const std::vector<GleanedLog> logs = {
        {LogType::append, big_endian(0) + big_endian(1), 0, "0", Vid::make(3, 1)},
        {LogType::append, big_endian(1) + big_endian(1), 0, "1", Vid::make(3, 2)}};
    ASSERT_TRUE(stage.round(logs, {"", big_endian(1)}, 3));
    PageDamage damage(stage);
    const SnapshotPointer root = stage.storage.base_root;
    stage.salvages = stage.rewrites = true;
    stage.before_compose = [&](uint32_t node) {
      if (node == unlucky) {
        damage.flip(stage.path(root.node(), root.snapshot()), root.page());
      } else {
        damage.repair();
      }
    };
    const auto combined = stage.round({}, {""}, 4);
    ASSERT_TRUE(combined) << combined.error().message;
    ASSERT_EQ(stage.unreadable.size(), 1u) << "the appends of node " << unlucky;
    EXPECT_EQ(stage.unreadable[0].page, root);
    EXPECT_TRUE(stage.unreadable[0].range.contains("node " + std::to_string(unlucky)))
        << stage.unreadable[0].range;
    std::string found;
    const auto totals = stage.walk([&](const WalkedRecord& record) {
      found.append(reinterpret_cast<const char*>(record.payload.data()), record.payload.size());
      return Result<void>();
    });
    ASSERT_TRUE(totals) << totals.error().message;
    EXPECT_EQ(found, unlucky == 0 ? "1" : "0");
  }
}

/// The range of a damaged page cannot be read, and all other ranges can. Records that are committed
/// to the range later are readable when the page is repaired.
TEST(DamagedPages, MakeTheirOwnRangeUnreadableAndNothingElse) {
  DamagedTree tree;
  const SnapshotPointer page = tree.page_of(1000);
  tree.flip(page);
  for (uint64_t epoch = 6; epoch < 9; ++epoch) {
    std::vector<GleanedLog> logs;
    for (const uint64_t key : {10u, 1000u, 1001u, 1990u}) {
      tree.write(key, LogType::update, epoch, logs);
    }
    ASSERT_NO_FATAL_FAILURE(tree.take(logs, epoch));
    uint64_t gaps = 0;
    ASSERT_NO_FATAL_FAILURE(check_readable(tree.stage, tree.model, gaps));
    EXPECT_EQ(gaps, 1u);
  }
  ASSERT_EQ(tree.stage.unreadable.size(), 3u);
  EXPECT_TRUE(tree.stage.unreadable[0].range.starts_with("keys from 0x"))
      << tree.stage.unreadable[0].range;
  EXPECT_EQ(tree.stage.unreadable[0].page, page);
  // Readers of the range get an error, and no data.
  PageBuffer buffer;
  const SnapshotPointer stand_in = tree.stage.unreadable[2].page;
  EXPECT_TRUE(is_stand_in(stand_in));
  const auto read = tree.stage.reader.read(stand_in, &buffer.header());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ExitCode::corruption);

  tree.damage.repair();
  std::vector<GleanedLog> logs;
  tree.write(1001, LogType::update, 9, logs);
  ASSERT_NO_FATAL_FAILURE(tree.take(logs, 9));
  check_stage(tree.stage, tree.model);
}

TEST(DamagedPages, KeepTheirVolatilePages) { EXPECT_EQ(unreadable_ranges_keep_their_pages(), ""); }

TEST(DamagedPages, KeepTheirVolatilePagesThatHaveNoChanges) {
  EXPECT_EQ(unreadable_ranges_keep_their_clean_pages(), "");
}

/// A composer replaces a damaged page by a stand-in even if its range has no new log records.
/// Installers recognize only stand-ins.
TEST(DamagedPages, BecomeStandInsAsSoonAsAComposerFindsThem) {
  DamagedTree tree;
  tree.flip(tree.page_of(1000));
  tree.stage.rewrites = true;
  for (uint64_t epoch = 6; epoch < 9; ++epoch) {
    std::vector<GleanedLog> logs;
    tree.write(10, LogType::update, epoch, logs);
    ASSERT_NO_FATAL_FAILURE(tree.take(logs, epoch));
  }
  const std::vector<UnreadablePage>& found = tree.stage.unreadable;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_FALSE(is_stand_in(found[0].page));
  EXPECT_TRUE(is_stand_in(found[1].page));
  EXPECT_EQ(found[2].page, found[1].page) << "a stand-in stays while nothing changes";
  tree.damage.repair();
  ASSERT_NO_FATAL_FAILURE(tree.take({}, 9));
  check_stage(tree.stage, tree.model);
}

/// A job with captured pages fails if a page of the range cannot be read, or was a stand-in until
/// now. The next job captures no pages and succeeds.
TEST(DamagedPages, AreReplacedByNoCapturedPage) {
  DamagedTree tree;
  const std::string first = tree.model.begin()->first;
  const uint64_t slice = slice_of(std::as_bytes(std::span(first)));
  OneCapture source(tree.model, {0, slice + 2, false});
  tree.flip(tree.page_of(slice));
  std::vector<GleanedLog> logs;
  tree.write(slice, LogType::update, 6, logs);  // without captured pages it needs a stand-in
  const auto combined = tree.stage.round(logs, {""}, 6, &source);
  ASSERT_TRUE(combined) << combined.error().message;
  EXPECT_EQ(tree.stage.misfits, 1u);
  EXPECT_EQ(tree.stage.captured_pages, 1u);
  uint64_t gaps = 0;
  ASSERT_NO_FATAL_FAILURE(check_readable(tree.stage, tree.model, gaps));
  EXPECT_EQ(gaps, 1u) << "the range stays unreadable";

  // The page under the stand-in can be read again, and may cover more than the captured range.
  tree.damage.repair();
  logs.clear();
  tree.write(slice, LogType::update, 7, logs);  // without captured pages it replaces the stand-in
  const auto repaired = tree.stage.round(logs, {""}, 7, &source);
  ASSERT_TRUE(repaired) << repaired.error().message;
  EXPECT_EQ(tree.stage.misfits, 2u);
  check_stage(tree.stage, tree.model);
  // The new base has no stand-in, so the captured page fits.
  const auto fitting = tree.stage.round({}, {""}, 8, &source);
  ASSERT_TRUE(fitting) << fitting.error().message;
  EXPECT_EQ(tree.stage.misfits, 2u);
  check_stage(tree.stage, tree.model);
}

TEST(DamagedPages, GiveHeldRecordsBack) { EXPECT_EQ(held_records_are_restored(), ""); }

/// The held records stay bounded over any number of snapshots, because later records cover earlier
/// ones (R35).
TEST(DamagedPages, HoldNoMoreThanTheirKeysNeed) {
  DamagedTree tree;
  tree.flip(tree.page_of(1000));
  uint64_t most = 0;
  for (uint64_t epoch = 6; epoch < 6 + 5 * kMaxHeldBatches; ++epoch) {
    std::vector<GleanedLog> logs;
    for (const uint64_t key : {1000u, 1001u}) tree.write(key, LogType::insert, epoch, logs);
    const std::string part = std::to_string(epoch % 10);
    const Vid vid = Vid::make(epoch, 1);
    tree.model[big_endian(1002)].payload.replace(0, 1, part);
    tree.model[big_endian(1002)].vid = vid;
    logs.push_back({LogType::update, big_endian(1002), 0, part, vid});
    ASSERT_NO_FATAL_FAILURE(tree.take(logs, epoch));
    if (epoch == 6) continue;
    const SnapshotPointer stand_in = tree.stage.unreadable.back().page;
    ASSERT_TRUE(is_stand_in(stand_in));
    PageBuffer page;
    ASSERT_TRUE(tree.stage.reader.read(unmarked(stand_in), &page.header()));
    most = std::max(most, page.as<StandInPage>()->held_bytes);
    EXPECT_LE(page.as<StandInPage>()->held_batches, kMaxHeldBatches);
  }
  // Each snapshot adds three held records, each of less than 80 bytes.
  EXPECT_LE(most, (kMaxHeldBatches + 1) * 3 * 80);
  tree.damage.repair();
  tree.stage.rewrites = true;
  ASSERT_NO_FATAL_FAILURE(tree.take({}, 6 + 5 * kMaxHeldBatches));
  check_stage(tree.stage, tree.model);
}

/// While a range has no new log records, no page of it is read or written.
TEST(DamagedPages, KeepTheirPointerWhereNothingChanges) {
  DamagedTree tree;
  tree.flip(tree.page_of(1000));
  std::vector<GleanedLog> logs;
  tree.write(10, LogType::update, 6, logs);
  ASSERT_NO_FATAL_FAILURE(tree.take(logs, 6));
  EXPECT_TRUE(tree.stage.unreadable.empty());
  tree.damage.repair();
  check_stage(tree.stage, tree.model);
}

/// A salvage drops unreadable records for good, and keeps what was written to the range since.
TEST(DamagedPages, AreOmittedByASalvageWhichReportsThem) {
  DamagedTree tree;
  tree.flip(tree.page_of(1000));
  std::vector<GleanedLog> logs;
  tree.write(1000, LogType::insert, 6, logs);
  ASSERT_NO_FATAL_FAILURE(tree.take(logs, 6));
  tree.stage.unreadable.clear();
  tree.stage.rewrites = tree.stage.salvages = true;
  ASSERT_NO_FATAL_FAILURE(tree.take({}, 7));
  ASSERT_EQ(tree.stage.unreadable.size(), 1u);
  Model found;
  const auto totals = tree.stage.read_all(found);
  ASSERT_TRUE(totals) << totals.error().message;
  EXPECT_LT(found.size(), tree.model.size());
  EXPECT_GT(found.size(), tree.model.size() - 200);
  for (const auto& [key, record] : found) EXPECT_EQ(record, tree.model[key]);
  EXPECT_TRUE(found.contains(big_endian(1000))) << "it was written after the damage";
}

/// A damaged stand-in is handled like the damaged page that it replaces.
TEST(DamagedPages, MayBeStandIns) {
  DamagedTree tree;
  tree.flip(tree.page_of(1000));
  for (uint64_t epoch = 6; epoch < 9; ++epoch) {
    std::vector<GleanedLog> logs;
    tree.write(1000, LogType::update, epoch, logs);
    ASSERT_NO_FATAL_FAILURE(tree.take(logs, epoch));
    if (epoch != 6) tree.flip(unmarked(tree.stage.unreadable.back().page));
  }
  tree.damage.repair();
  tree.stage.rewrites = true;
  ASSERT_NO_FATAL_FAILURE(tree.take({}, 9));
  check_stage(tree.stage, tree.model);
}

}  // namespace
}  // namespace atolldb::test
