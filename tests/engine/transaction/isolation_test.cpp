// Transactions that read a snapshot (R18): oracles for trees, arrays and heaps, and fixed
// interleavings.
#include <gtest/gtest.h>

#include "tests/engine/transaction/isolation_others.h"
#include "tests/engine/transaction/isolation_rules.h"
#include "tests/engine/transaction/isolation_tree.h"

namespace atolldb::test {
namespace {

TEST(Isolation, ASnapshotOfATreeStaysAsItIsWhileTheTreeChanges) {
  EXPECT_EQ(tree_isolation_oracle(300, rounds(15, 400)), "");
  EXPECT_EQ(tree_isolation_oracle(4000, rounds(15, 400)), "");
  EXPECT_EQ(tree_isolation_oracle(300, rounds(15, 400), true), "") << "with a delta tree";
}

TEST(Isolation, ASnapshotOfAnArrayStaysAsItIsWhileTheArrayChanges) {
  EXPECT_EQ(array_isolation_oracle(100, rounds(100, 5000)), "") << "one page";
  EXPECT_EQ(array_isolation_oracle(20'000, rounds(200, 5000)), "") << "two levels";
}

TEST(Isolation, ASnapshotOfAHeapStaysAsItIsWhileOthersAppend) {
  EXPECT_EQ(sequential_isolation_oracle(rounds(40, 1000)), "");
}

TEST(Isolation, AWriteOfWhatHasChangedSinceTheSnapshotIsRefused) {
  for (const Kind kind : {Kind::array, Kind::tree}) {
    EXPECT_EQ(snapshot_write_of_a_changed_record(kind, true), "");
    EXPECT_EQ(snapshot_write_of_a_changed_record(kind, false), "");
  }
}

TEST(Isolation, AnOwnWriteIsReadWithTheVersionOfTheSnapshotsRecord) {
  EXPECT_EQ(own_writes_have_the_snapshots_version(Kind::array), "");
  EXPECT_EQ(own_writes_have_the_snapshots_version(Kind::tree), "");
}

TEST(Isolation, AKeyThatItsPageHasElidedSinceTheSnapshotCountsAsChanged) {
  EXPECT_EQ(snapshot_write_of_a_key_that_was_elided(), "");
}

TEST(Isolation, AReservedRecordCountsAsUnchanged) {
  EXPECT_EQ(snapshot_write_of_a_reserved_record(), "");
}

TEST(Isolation, AReaderOfASnapshotSeesNoLaterCommit) {
  EXPECT_EQ(snapshot_readers_see_no_later_commit(Kind::array), "");
  EXPECT_EQ(snapshot_readers_see_no_later_commit(Kind::tree), "");
}

TEST(Isolation, WriteSkewIsPossibleOnSnapshotsAndNotBetweenSerializableTransactions) {
  EXPECT_EQ(write_skew_under(Isolation::snapshot), "");
  EXPECT_EQ(write_skew_under(Isolation::serializable), "");
}

TEST(Isolation, TransfersKeepTheSumWithWhateverIsolation) {
  EXPECT_EQ(transfers_keep_the_sum(Kind::tree, rounds(3000, 300'000)), "");
  EXPECT_EQ(transfers_keep_the_sum(Kind::array, rounds(3000, 300'000)), "");
}

TEST(Isolation, ASnapshotThatIsReadIsAnnounced) {
  EXPECT_EQ(a_snapshot_that_is_read_is_announced(), "");
}

TEST(Isolation, AnOlderSnapshotIsReadByItsName) {
  SnapshotStage stage(StorageType::mastertree);
  stage.storage.id = 1;
  std::vector<std::unique_ptr<const SnapshotView>> views;
  for (const uint64_t epoch : {10u, 20u, 30u}) {
    const std::vector<GleanedLog> logs = {
        {LogType::insert, "key", 0, std::to_string(epoch), Vid::make(epoch, 1)}};
    ASSERT_TRUE(stage.round(logs, {""}, epoch).has_value());
    views.push_back(ColdCluster::view_of(stage, 1));
  }
  ColdCluster cold(stage, 1);
  // `readable_snapshot` of the cluster names the newest snapshot, in whatever order snapshots are
  // published.
  for (const size_t i : {1u, 2u, 0u}) {
    ASSERT_TRUE(cold.published.publish(std::move(views[i])).has_value());
  }
  cold.make_newest(3);
  EXPECT_EQ(cold.published.ids(), (std::set<uint32_t>{1, 2, 3}));
  const auto payload_in = [&](TransactionMode mode) {
    char buffer[8];
    uint32_t bytes = 0;
    Transaction& txn = *cold.cluster.worker(0).transaction;
    Status status = txn.begin(kMaxEpoch, mode);
    if (status != Status::ok) return std::string(to_string(status));
    status = MasterTree(cold.storage).get(txn, bytes_of("key"), buffer, sizeof buffer, bytes);
    EXPECT_EQ(status, Status::ok);
    EXPECT_EQ(txn.commit(), Status::ok);
    return std::string(buffer, bytes);
  };
  EXPECT_EQ(payload_in({Isolation::snapshot_read_only}), "30");
  EXPECT_EQ(payload_in({Isolation::snapshot_read_only, 1}), "10");
  EXPECT_EQ(payload_in({Isolation::snapshot_read_only, 2}), "20");
  EXPECT_EQ(payload_in({Isolation::snapshot_read_only, 4}), "snapshot_not_found");
  EXPECT_EQ(payload_in({Isolation::snapshot, 1}), "invalid_argument");
  cold.make_newest(2);
  cold.published.withdraw_all_but({1, 2});
  EXPECT_EQ(payload_in({Isolation::snapshot_read_only}), "20");
  EXPECT_EQ(payload_in({Isolation::snapshot_read_only, 3}), "snapshot_not_found");
}

}  // namespace
}  // namespace atolldb::test
