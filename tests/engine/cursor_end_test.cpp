// What cursors return at their ends, where there is no current record.
#include <gtest/gtest.h>

#include <string>

#include "engine/sequential/sequential.h"
#include "tests/engine/transaction/anomaly_stage.h"
#include "tests/engine/transaction/isolation_rules.h"

namespace atolldb::test {
namespace {

/// Scans the whole tree in both directions. Reads before the first and after the last record fail.
void expect_no_record_at_the_ends(Transaction& txn, const MasterTree& tree) {
  uint64_t value = 0;
  for (const bool forward : {true, false}) {
    MasterTreeCursor cursor(tree, txn, {}, forward);
    EXPECT_EQ(cursor.get(&value, sizeof value), Status::invalid_argument) << "before the first";
    uint64_t records = 0;
    while (cursor.next() == Status::ok) {
      EXPECT_EQ(cursor.get(&value, sizeof value), Status::ok);
      ++records;
    }
    EXPECT_GT(records, 0u);
    EXPECT_EQ(cursor.get(&value, sizeof value), Status::invalid_argument) << "after the last";
    EXPECT_EQ(cursor.ref().record, nullptr);
    EXPECT_EQ(cursor.next(), Status::end_of_scan);
    EXPECT_EQ(cursor.get(&value, sizeof value), Status::invalid_argument);
  }
}

TEST(CursorEnd, NothingIsReadBeforeAndAfterTheRecords) {
  Stage stage;
  ASSERT_EQ(stage.a().begin(), Status::ok);
  expect_no_record_at_the_ends(stage.a(), stage.tree().tree());
  EXPECT_EQ(stage.a().commit(), Status::ok);
}

TEST(CursorEnd, NothingIsReadOfErasedRecordsAtTheEnds) {
  Stage stage;
  for (const uint64_t key : {uint64_t{0}, uint64_t{90}}) {
    stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, key); });
  }
  ASSERT_EQ(stage.a().begin(), Status::ok);
  expect_no_record_at_the_ends(stage.a(), stage.tree().tree());
  EXPECT_EQ(stage.a().commit(), Status::ok);
}

TEST(CursorEnd, NothingIsReadBeforeAndAfterTheRecordsOfASnapshot) {
  IsolationStage stage(Kind::tree);
  const MasterTree tree = stage.table().tree();
  // A serializable transaction reads snapshot pages, too, where there are no volatile pages.
  for (const Isolation isolation :
       {Isolation::snapshot_read_only, Isolation::snapshot, Isolation::serializable}) {
    ASSERT_EQ(stage.begin(0, isolation), Status::ok);
    expect_no_record_at_the_ends(stage.txn(0), tree);
    EXPECT_EQ(stage.txn(0).commit(), Status::ok);
  }
}

TEST(CursorEnd, NothingIsReadAfterOwnWritesThatAScanOfASnapshotReturnsLast) {
  IsolationStage stage(Kind::tree);
  ASSERT_EQ(stage.begin(0, Isolation::snapshot), Status::ok);
  ASSERT_EQ(stage.table().insert(stage.txn(0), IsolationStage::kRecords + 5, 1), Status::ok);
  ASSERT_EQ(stage.table().put(stage.txn(0), 0, 1), Status::ok);
  expect_no_record_at_the_ends(stage.txn(0), stage.table().tree());
  EXPECT_EQ(stage.txn(0).commit(), Status::ok);
}

TEST(CursorEnd, AHeapHasNoPayloadAfterItsLastRecord) {
  TestCluster cluster(1, 1, {.clock = false});
  const Sequential heap(cluster.create("heap", StorageType::sequential));
  const std::string text = "record";
  ASSERT_EQ(cluster.worker(0).run(
                [&](Transaction& txn) { return heap.append(txn, std::as_bytes(std::span(text))); }),
            Status::ok);
  Transaction& txn = *cluster.worker(0).transaction;
  ASSERT_EQ(txn.begin(), Status::ok);
  SequentialCursor cursor(heap, txn);
  ASSERT_EQ(cursor.next(), Status::ok);
  EXPECT_EQ(cursor.payload().size(), text.size());
  EXPECT_EQ(cursor.next(), Status::end_of_scan);
  EXPECT_TRUE(cursor.payload().empty());
  EXPECT_EQ(cursor.epoch(), 0u);
  EXPECT_EQ(txn.commit(), Status::ok);
}

}  // namespace
}  // namespace atolldb::test
