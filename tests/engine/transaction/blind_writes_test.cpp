// Blind writes, which conflict with no other blind write (R33), and pages installed over a null
// pointer that was read (R5).
#include <gtest/gtest.h>

#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {
namespace {

class BlindWrites : public testing::TestWithParam<Kind> {
 protected:
  /// Runs `operate` in two concurrent transactions, which must both commit.
  template <typename Operate>
  void both(Stage& stage, Operate&& operate) {
    for (Transaction* txn : {&stage.a(), &stage.b()}) ASSERT_EQ(txn->begin(), Status::ok);
    for (Transaction* txn : {&stage.a(), &stage.b()}) ASSERT_EQ(operate(*txn), Status::ok);
    EXPECT_EQ(stage.a().commit(), Status::ok);
    EXPECT_EQ(stage.b().commit(), Status::ok);
  }
};

INSTANTIATE_TEST_SUITE_P(Storages, BlindWrites, testing::Values(Kind::array, Kind::tree),
                         [](const auto& tested) {
                           return std::string(tested.param == Kind::array ? "Array" : "Tree");
                         });

TEST_P(BlindWrites, DoNotConflict) {
  Stage stage;
  const Table& table = stage.table(GetParam());
  both(stage, [&](Transaction& txn) { return table.put(txn, 10, &txn == &stage.a() ? 1 : 2); });
  EXPECT_EQ(stage.value_of(GetParam(), 10), 2) << "not the one that committed last";
}

TEST_P(BlindWrites, IncrementsDoNotConflictAndSumUp) {
  Stage stage;
  const Table& table = stage.table(GetParam());
  both(stage,
       [&](Transaction& txn) { return table.add(txn, 10, &txn == &stage.a() ? 100 : 1000); });
  EXPECT_EQ(stage.value_of(GetParam(), 10), 1110);
}

TEST_P(BlindWrites, AnIncrementThatWasReadIsARead) {
  Stage stage;
  const Table& table = stage.table(GetParam());
  Transaction& a = stage.a();
  uint64_t value = 0;
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_EQ(table.add(a, 10, 5), Status::ok);
  ASSERT_EQ(table.get(a, 10, value), Status::ok);
  EXPECT_EQ(value, 15);
  stage.commit_alone([&](Transaction& b) { return table.add(b, 10, 1); });
  EXPECT_EQ(a.commit(), Status::read_conflict);
  EXPECT_EQ(stage.value_of(GetParam(), 10), 11);
}

TEST(Increments, OfARecordThatWasDeletedMeanwhileAbort) {
  Stage stage;
  Transaction& a = stage.a();
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_EQ(stage.tree().add(a, 10, 5), Status::ok);
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 10); });
  EXPECT_EQ(a.commit(), Status::write_conflict);
}

TEST(Increments, OfAMissingRecordAnswerNotFound) {
  Stage stage;
  Transaction& a = stage.a();
  ASSERT_EQ(a.begin(), Status::ok);
  EXPECT_EQ(stage.tree().add(a, 11, 5), Status::not_found);
  stage.commit_alone([&](Transaction& b) { return stage.tree().insert(b, 11, 5); });
  EXPECT_EQ(a.commit(), Status::phantom) << "that the record was missing is a read";
}

/// A look-up answers "not found", then the transaction writes the key. It aborts once, because it
/// installs the page over the null word that it read.
TEST(PagesThatWereMissing, AreInstalledOnTheRetry) {
  Stage stage;
  const Table tree(Kind::tree, stage.empty_tree("empty"));
  const Table array(Kind::array,
                    stage.cluster().create("unwritten", StorageType::array, 8, Stage::kKeys));
  for (const Table& table : {tree, array}) {
    int attempts = 0;
    const Status status = stage.cluster().worker(0).run([&](Transaction& txn) {
      ++attempts;
      uint64_t value = 0;
      const Status read = table.get(txn, 5, value);
      if (is_abort(read)) return read;
      EXPECT_EQ(value, 0);
      return table.put(txn, 5, 1);
    });
    EXPECT_EQ(status, Status::ok);
    EXPECT_EQ(attempts, 2);
  }
  const auto reason = static_cast<uint32_t>(Status::pointer_installed);
  EXPECT_EQ(stage.cluster().metrics(0, 0).aborts[reason].get(), 2);
}

}  // namespace
}  // namespace atolldb::test
