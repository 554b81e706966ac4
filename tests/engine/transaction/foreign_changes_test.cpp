// Answers and own writes whose preconditions other transactions change.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "engine/mastertree/cursor.h"
#include "engine/mastertree/descent.h"
#include "engine/transaction/run.h"
#include "tests/engine/mastertree/oracle.h"
#include "tests/engine/transaction/anomaly_stage.h"
#include "tests/engine/transaction/answer_rules.h"

namespace atolldb::test {
namespace {

TEST(ForeignChanges, TheLengthThatAnIncrementFoundIsVerified) {
  Stage stage;
  const MasterTree tree(stage.empty_tree("short"));
  stage.commit_alone(
      [&](Transaction& b) { return tree.insert(b, bytes_of("k"), bytes_of("1234")); });
  Transaction& a = stage.a();
  const uint64_t one = 1;
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_EQ(tree.increment(a, bytes_of("k"), 0, IncrementType::u64, &one), Status::out_of_range);
  stage.commit_alone([&](Transaction& b) {
    const Status status = tree.upsert(b, bytes_of("k"), bytes_of("12345678"));
    return status == Status::ok ? stage.array().put(b, 1, 5) : status;
  });
  uint64_t value = 0;
  ASSERT_EQ(stage.array().get(a, 1, value), Status::ok);
  ASSERT_EQ(value, 5u);
  EXPECT_EQ(a.commit(), Status::read_conflict) << "saw what was before b, and what was after it";
}

TEST(ForeignChanges, TheLengthUnderAnIncrementIsVerifiedWhateverReplacesIt) {
  EXPECT_EQ(length_of_an_increment_is_verified(After::upsert), "") << "upsert";
  EXPECT_EQ(length_of_an_increment_is_verified(After::update), "") << "update";
  EXPECT_EQ(length_of_an_increment_is_verified(After::erase), "") << "erase";
  EXPECT_EQ(length_of_an_increment_is_verified(After::erase_at_cursor), "") << "erase at a cursor";
  EXPECT_EQ(length_of_an_increment_is_verified(After::read), "") << "read";
}

TEST(ForeignChanges, AUserAbortVerifiesTheLengthOfWhatItIncremented) {
  EXPECT_EQ(length_of_an_increment_is_verified(After::user_abort), "");
}

/// The increments have different offsets, so the second one replaces the first by an update.
/// Meanwhile the record has become too short for that.
TEST(ForeignChanges, ASecondIncrementOfARecordThatHasShrunkIsAConflict) {
  Stage stage;
  const MasterTree tree(stage.empty_tree("short"));
  const std::string whole(16, '\1');
  stage.commit_alone(
      [&](Transaction& b) { return tree.insert(b, bytes_of("k"), bytes_of(whole)); });
  Transaction& a = stage.a();
  const uint64_t one = 1;
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_EQ(tree.increment(a, bytes_of("k"), 8, IncrementType::u64, &one), Status::ok);
  stage.commit_alone(
      [&](Transaction& b) { return tree.upsert(b, bytes_of("k"), bytes_of("12345678")); });
  EXPECT_EQ(tree.increment(a, bytes_of("k"), 0, IncrementType::u64, &one), Status::write_conflict);
  a.rollback(Status::write_conflict);
}

TEST(ForeignChanges, AnErasedRecordUnderAnOwnUpdateIsAConflict) {
  Stage stage;
  Transaction& a = stage.a();
  const MasterTree tree = stage.tree().tree();
  const uint32_t half = 0;
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_EQ(tree.update_range(a, ordered_key(30), 0, bytes_view(&half, 4)), Status::ok);
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 30); });
  uint64_t value = 0;
  EXPECT_EQ(stage.tree().get(a, 30, value), Status::write_conflict);
  a.rollback(Status::write_conflict);
}

TEST(ForeignChanges, ACursorReadsNothingOfARecordThatWasErasedUnderIt) {
  Stage stage;
  Transaction& a = stage.a();
  const MasterTree tree = stage.tree().tree();
  ASSERT_EQ(a.begin(), Status::ok);
  MasterTreeCursor cursor(tree, a, {}, true);
  ASSERT_EQ(cursor.next(), Status::ok);
  ASSERT_EQ(tree.erase(a, cursor.ref(), cursor.key()), Status::ok);
  uint64_t value = 0;
  EXPECT_EQ(cursor.get(&value, sizeof(value)), Status::not_found);
  EXPECT_EQ(a.commit(), Status::ok);
}

TEST(ForeignChanges, AUserAbortVerifiesThatWhatItIncrementedExists) {
  Stage stage;
  Transaction& a = stage.a();
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_EQ(stage.tree().add(a, 30, 1), Status::ok);
  stage.commit_alone([&](Transaction& b) {
    const Status status = stage.tree().erase(b, 30);
    return status == Status::ok ? stage.array().put(b, 1, 5) : status;
  });
  uint64_t value = 0;
  ASSERT_EQ(stage.array().get(a, 1, value), Status::ok);
  ASSERT_EQ(value, 5u);
  EXPECT_EQ(a.commit_user_abort(), Status::read_conflict);
  // An increment of a record that still exists is no reason to repeat the attempt.
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_EQ(stage.tree().add(a, 40, 1), Status::ok);
  EXPECT_EQ(a.commit_user_abort(), Status::ok);
}

/// A scan passes a run of tombstones at the head of a queue. Then an insert of the same transaction
/// revives one of them. A cursor of the transaction that has not reached this key yet must return
/// the record.
TEST(ForeignChanges, ACursorSeesAnOwnInsertThatRevivesWhatItPassed) {
  Stage stage;
  stage.commit_alone([&](Transaction& b) {
    for (uint64_t key = 20; key < 60; key += 10) {
      const Status status = stage.tree().erase(b, key);
      if (status != Status::ok) return status;
    }
    return Status::ok;
  });
  Transaction& a = stage.a();
  uint64_t count = 0;
  ASSERT_EQ(a.begin(), Status::ok);
  // With this scan the worker remembers the run of tombstones.
  ASSERT_EQ(stage.tree().scan(a, 0, 100, true, count), Status::ok);
  ASSERT_EQ(count, 6u);
  MasterTreeCursor cursor(stage.tree().tree(), a, {}, true);
  ASSERT_EQ(cursor.next(), Status::ok);
  ASSERT_EQ(stage.tree().insert(a, 40, 1), Status::ok);
  std::vector<uint64_t> found;
  Status status = Status::ok;
  while ((status = cursor.next()) == Status::ok) {
    uint64_t value = 0;
    ASSERT_EQ(cursor.get(&value, sizeof(value)), Status::ok);
    found.push_back(value);
  }
  EXPECT_EQ(status, Status::end_of_scan);
  EXPECT_EQ(found, (std::vector<uint64_t>{10, 1, 60, 70, 80, 90}));
  EXPECT_EQ(a.commit(), Status::ok);
}

/// A compaction has marked the root of an empty layer as dropped. The thread of the compaction was
/// descheduled before it updated the page above.
class DroppedLayer : public testing::Test {
 protected:
  void SetUp() override {
    stage_.commit_alone([&](Transaction& txn) {
      const Status status = tree_.insert(txn, bytes_of(one_), {});
      return status == Status::ok ? tree_.insert(txn, bytes_of(two_), {}) : status;
    });
    stage_.commit_alone([&](Transaction& txn) {
      root_ = locate(txn.worker(), tree_.storage(), bytes_of(one_)).page;
      return Status::ok;
    });
    before_ = root_->header.version();
    root_->header.set_version(before_.with_status(PageVersion::kMoved | PageVersion::kDropped));
  }
  /// Runs `body` while the compaction pauses. The compaction continues as soon as `body` has waited
  /// for a while, or is done.
  template <typename Body>
  Status run(Body&& body) {
    std::atomic<bool> done{false};
    std::thread compactor([&] {
      // During these yields, a reader that does not wait fills its set of 4096 entries.
      for (int i = 0; i < 5'000 && !done.load(std::memory_order_acquire); ++i) sched_yield();
      root_->header.set_version(before_);
    });
    const Status status = stage_.cluster().worker(0).run(body);
    done.store(true, std::memory_order_release);
    compactor.join();
    return status;
  }

  Stage stage_;
  MasterTree tree_{stage_.empty_tree("deep")};
  const std::string one_ = "aaaaaaaabbbbbbbbX1";
  const std::string two_ = "aaaaaaaabbbbbbbbX2";
  BorderPage* root_ = nullptr;
  PageVersion before_;
};

TEST_F(DroppedLayer, AScanWaits) {
  EXPECT_EQ(run([&](Transaction& txn) {
              MasterTreeCursor cursor(tree_, txn, {}, true);
              return cursor.next();
            }),
            Status::ok);
}
TEST_F(DroppedLayer, ALookUpWaits) {
  EXPECT_EQ(run([&](Transaction& txn) {
              uint32_t bytes = 0;
              return tree_.get(txn, bytes_of(one_), nullptr, 0, bytes);
            }),
            Status::ok);
}

}  // namespace
}  // namespace atolldb::test
