// Updates of parts of a record that are logged as whole versions (R107).
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "engine/mastertree/cursor.h"
#include "engine/mastertree/mastertree.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

Bytes as_key(const std::string& text) { return std::as_bytes(std::span(text)); }

class WholeVersions : public testing::Test {
 protected:
  WholeVersions() {
    for (uint32_t i = 0; i < 2; ++i) cluster_.worker(i).context->use_whole_versions(kBytes);
    commit_alone(
        [&](Transaction& txn) { return tree_.insert(txn, key_bytes_, as_key("0123456789")); });
  }

  Transaction& a() { return *cluster_.worker(0).transaction; }
  /// Commits `body` on another worker than that of a().
  template <typename Body>
  void commit_alone(Body&& body) {
    ASSERT_EQ(cluster_.worker(1).run(body), Status::ok);
  }
  Status update(Transaction& txn, uint32_t offset, const std::string& bytes) {
    return tree_.update_range(txn, key_bytes_, offset, as_key(bytes));
  }
  Status read(Transaction& txn, std::string& payload) {
    uint32_t bytes = 0;
    payload.resize(64);
    const Status status = tree_.get(txn, key_bytes_, payload.data(), 64, bytes);
    payload.resize(status == Status::ok ? bytes : 0);
    return status;
  }
  std::string content() {
    std::string found;
    commit_alone([&](Transaction& txn) { return read(txn, found); });
    return found;
  }

  static constexpr uint32_t kBytes = 10;  // of the record
  const std::string key_ = "key";
  const Bytes key_bytes_ = as_key(key_);
  TestCluster cluster_{1, 2};
  MasterTree tree_{cluster_.create("tree", StorageType::mastertree, 0)};
};

TEST_F(WholeVersions, KeepTheOtherBytes) {
  commit_alone([&](Transaction& txn) { return update(txn, 3, "xy"); });
  EXPECT_EQ(content(), "012xy56789");
}

TEST_F(WholeVersions, OfOneTransactionAddUp) {
  ASSERT_EQ(a().begin(), Status::ok);
  ASSERT_EQ(update(a(), 3, "xy"), Status::ok);
  ASSERT_EQ(update(a(), 4, "z"), Status::ok);
  ASSERT_EQ(update(a(), 9, "!"), Status::ok);
  std::string own;
  ASSERT_EQ(read(a(), own), Status::ok);
  EXPECT_EQ(own, "012xz5678!");
  EXPECT_EQ(update(a(), 9, "!!"), Status::out_of_range);
  ASSERT_EQ(a().commit(), Status::ok);
  EXPECT_EQ(content(), own);
}

// A whole version must not bring the other bytes of an older version back.
TEST_F(WholeVersions, AbortIfTheOtherBytesChange) {
  ASSERT_EQ(a().begin(), Status::ok);
  ASSERT_EQ(update(a(), 0, "a"), Status::ok);
  commit_alone([&](Transaction& txn) { return update(txn, 9, "b"); });
  EXPECT_EQ(a().commit(), Status::read_conflict);
  EXPECT_EQ(content(), "012345678b");
}

TEST_F(WholeVersions, AbortIfTheRecordChangesAfterTheScanThatFoundIt) {
  ASSERT_EQ(a().begin(), Status::ok);
  MasterTreeCursor cursor(tree_, a(), {}, true);
  ASSERT_EQ(cursor.next(), Status::ok);
  commit_alone([&](Transaction& txn) { return tree_.update(txn, key_bytes_, as_key("short")); });
  const Status planned = tree_.update_range(a(), cursor.ref(), cursor.key(), 0, as_key("a"));
  if (planned == Status::ok) {
    EXPECT_EQ(a().commit(), Status::read_conflict);
  } else {
    a().rollback(planned);
  }
  EXPECT_EQ(content(), "short");
}

TEST_F(WholeVersions, OfAnErasedRecordAnswerNotFound) {
  ASSERT_EQ(a().begin(), Status::ok);
  ASSERT_EQ(tree_.erase(a(), key_bytes_), Status::ok);
  EXPECT_EQ(update(a(), 0, "a"), Status::not_found);
  ASSERT_EQ(a().commit(), Status::ok);
}

TEST_F(WholeVersions, FollowAnIncrementOfTheSameTransaction) {
  const std::string zeros(8, '\0');
  commit_alone([&](Transaction& txn) { return tree_.update(txn, key_bytes_, as_key(zeros)); });
  const int64_t five = 5;
  ASSERT_EQ(a().begin(), Status::ok);
  ASSERT_EQ(tree_.increment(a(), key_bytes_, 0, IncrementType::i64, &five), Status::ok);
  ASSERT_EQ(update(a(), 7, "!"), Status::ok);
  ASSERT_EQ(a().commit(), Status::ok);
  EXPECT_EQ(content(), std::string("\5\0\0\0\0\0\0!", 8));
}

}  // namespace
}  // namespace atolldb::test
