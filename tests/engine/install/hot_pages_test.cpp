// Reference bits of volatile pages: frequent use sets a page's bit, and an installer that checks
// the bits keeps the page in memory.
#include <gtest/gtest.h>

#include "tests/engine/install/drop_rules.h"
#include "tests/engine/install/droppable_tree.h"

namespace atolldb::test {
namespace {

constexpr int kOften = 1000;

/// Returns true if the worker reads the record from a snapshot page.
bool is_cold(TestCluster& cluster, uint32_t worker, const std::function<void()>& read) {
  const Counter& reads = cluster.worker(worker).context->metrics().snapshot_reads;
  const uint64_t before = reads.get();
  read();
  return reads.get() != before;
}

TEST(HotPages, OfAnArrayAreSparedWithThoseAboveThem) {
  DropStage stage;
  stage.fill(0, 1);
  const uint64_t hot = stage.index(0, 1, 0);
  const uint64_t cold = stage.index(1, 0, 0);
  ASSERT_EQ(stage.write(0, {{cold, false, 1}}), Status::ok);
  for (int i = 0; i < kOften; ++i) ASSERT_EQ(stage.read(0, hot), 1);
  stage.drop_policy = drop_cold;
  InstallReport report;
  ASSERT_EQ(stage.snapshot_and_install(report), "");
  EXPECT_EQ(report.kept_hot, 1u);
  EXPECT_EQ(report.dropped, 3u) << "the other leaf of that page, the cold one, and its page";
  EXPECT_EQ(stage.pages().leaves, 1u);
  EXPECT_EQ(stage.pages().interiors, 1u);
  EXPECT_FALSE(is_cold(stage.cluster, 0, [&] { EXPECT_EQ(stage.read(0, hot), 1); }));
  EXPECT_TRUE(is_cold(stage.cluster, 0, [&] { EXPECT_EQ(stage.read(0, cold), 1); }));

  InstallReport next;
  ASSERT_EQ(stage.install(next), "");
  EXPECT_EQ(next.dropped, 2u) << "it was not used since";
  EXPECT_EQ(stage.pages().leaves + stage.pages().interiors, 0u);
}

/// `get_many` first finds all records, and reads them afterwards. It sets reference bits, too.
TEST(HotPages, OfAnArrayAreThoseFoundTogether) {
  DropStage stage;
  stage.fill(0, 1);
  const std::array<uint64_t, 2> indexes = {stage.index(0, 1, 0), stage.index(0, 1, 1)};
  std::vector<std::byte> out(indexes.size() * DropStage::kPayload);
  for (int i = 0; i < kOften; ++i) {
    ASSERT_EQ(
        stage.run_alone(
            0, [&](Transaction& txn) { return stage.array.get_many(txn, indexes, out.data()); }),
        Status::ok);
  }
  stage.drop_policy = drop_cold;
  InstallReport report;
  ASSERT_EQ(stage.snapshot_and_install(report), "");
  EXPECT_EQ(report.kept_hot, 1u);
  EXPECT_FALSE(is_cold(stage.cluster, 0, [&] { stage.read(0, indexes[0]); }));
}

TEST(HotPages, OfATreeAreSparedWithThoseAboveThem) {
  DroppableTree stage(1);
  ASSERT_EQ(stage.fill(), "");
  TreeStatistics statistics;
  ASSERT_EQ(stage.warm.install(forget_marks), "");
  ASSERT_EQ(stage.warm.check(statistics), "");
  ASSERT_GT(statistics.border_pages, 4u);
  const uint64_t hot = DroppableTree::kRecords / 2;
  const auto read = [&](uint64_t key) {
    EXPECT_EQ(stage.value_of(key), "old");
    // Ends the begin epoch. Otherwise the worker would remember the page, and find it without a
    // descent.
    stage.warm.cluster.worker(0).context->leave();
  };
  for (int i = 0; i < kOften; ++i) read(hot);
  ASSERT_EQ(stage.warm.install(drop_cold), "");
  EXPECT_EQ(stage.warm.report.kept_hot, 1u);
  ASSERT_EQ(stage.warm.check(statistics), "");
  EXPECT_EQ(statistics.border_pages, 1u);
  EXPECT_GE(statistics.interior_pages, 1u);
  EXPECT_FALSE(is_cold(stage.warm.cluster, 0, [&] { read(hot); }));
  EXPECT_TRUE(is_cold(stage.warm.cluster, 0, [&] { read(0); }));

  ASSERT_EQ(stage.warm.install(drop_cold), "");
  ASSERT_EQ(stage.warm.check(statistics), "");
  EXPECT_EQ(statistics.border_pages, 0u) << "it was not used since";
}

/// The use of remembered and of prefetched pages sets the reference bit, too.
TEST(HotPages, OfATreeAreThoseThatAreRememberedToo) {
  DroppableTree stage(1);
  ASSERT_EQ(stage.fill(), "");
  ASSERT_EQ(stage.warm.install(forget_marks), "");
  const std::string hot = big_endian(DroppableTree::kRecords / 2);
  const std::array<Bytes, 1> keys = {bytes_of(hot)};
  const Status status = stage.warm.cluster.worker(0).run([&](Transaction& txn) {
    std::array<std::byte, 8> out;
    Status one = Status::ok;
    for (int i = 0; i < kOften && one == Status::ok; ++i) {
      std::array<Status, 1> found;
      one = stage.tree.get_many(txn, keys, out.data(), out.size(), found);
    }
    return one;
  });
  ASSERT_EQ(status, Status::ok);
  stage.warm.cluster.worker(0).context->leave();
  ASSERT_EQ(stage.warm.install(drop_cold), "");
  EXPECT_EQ(stage.warm.report.kept_hot, 1u);
}

/// One scan of everything sets the bit of hardly any page, so it does not displace hot pages.
TEST(HotPages, AreSeldomThoseOfOneScan) {
  constexpr uint64_t kLeaves = 2000;
  const ArrayShape one(1, DropStage::kPayload);
  WarmArray stage(2, false, kLeaves * one.records_per_leaf, DropStage::kPayload);
  for (uint64_t leaf = 0; leaf < kLeaves; ++leaf) {
    ASSERT_EQ(stage.write(0, {{leaf * stage.shape.records_per_leaf, false, 1}}), Status::ok);
  }
  InstallReport report;
  stage.drop_policy = forget_marks;
  ASSERT_EQ(stage.snapshot_and_install(report), "");
  for (uint64_t leaf = 0; leaf < kLeaves; ++leaf) {
    ASSERT_EQ(stage.read(0, leaf * stage.shape.records_per_leaf), 1);
  }
  stage.drop_policy = drop_cold;
  InstallReport after;
  ASSERT_EQ(stage.install(after), "");
  // The scan sets the bit of about one page in 32.
  EXPECT_GT(after.kept_hot, kLeaves / 64);
  EXPECT_LT(after.kept_hot, kLeaves / 16);
}

}  // namespace
}  // namespace atolldb::test
