// insert_many: has the effect of single inserts in sequence, in any order of the keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/format/tree_key.h"
#include "engine/mastertree/cursor.h"
#include "engine/mastertree/inspect.h"
#include "tests/engine/mastertree/oracle.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {
namespace {

/// Inserts all texts in one call. Key and payload are the same text.
Status insert_all(const MasterTree& tree, Transaction& txn, const std::vector<std::string>& texts) {
  std::vector<Bytes> keys;
  for (const std::string& text : texts) keys.push_back(bytes_of(text));
  return tree.insert_many(txn, keys, keys);
}

std::string number_key(uint64_t number) {
  const auto key = ordered_key(number);
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

class InsertMany : public testing::Test {
 protected:
  std::vector<std::string> content() {
    std::vector<std::string> keys;
    stage_.commit_alone([&](Transaction& txn) {
      keys.clear();
      MasterTreeCursor cursor(tree_, txn, ScanRange{}, true);
      Status status = Status::ok;
      while ((status = cursor.next()) == Status::ok) {
        std::string payload(cursor.payload_bytes(), '?');
        CHECK(cursor.get(payload.data(), cursor.payload_bytes()) == Status::ok);
        keys.emplace_back(reinterpret_cast<const char*>(cursor.key().data()), cursor.key().size());
        EXPECT_EQ(payload, keys.back());
      }
      return status == Status::end_of_scan ? Status::ok : status;
    });
    TreeStatistics statistics;
    EXPECT_EQ(check_tree(stage_.cluster().view(), tree_.storage(), statistics), "");
    return keys;
  }

  Stage stage_;
  MasterTree tree_{stage_.empty_tree("many")};
};

TEST_F(InsertMany, AnyKeysInAnyOrder) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::map<std::string, bool> oracle;
  for (int round = 0; round < 100; ++round) {
    std::vector<std::string> texts;
    const uint64_t count = random() % 40;
    while (texts.size() < count) {
      std::string text = number_key(random() % 4096);
      text.resize(1 + random() % 12, 'l');  // some keys end early, others need a next layer
      if (oracle.emplace(text, true).second) texts.push_back(text);
    }
    if (round % 2 == 0) std::sort(texts.begin(), texts.end());
    stage_.commit_alone([&](Transaction& txn) { return insert_all(tree_, txn, texts); });
  }
  std::vector<std::string> expected;
  for (const auto& [text, present] : oracle) expected.push_back(text);
  EXPECT_EQ(content(), expected);
}

TEST_F(InsertMany, AscendingRunsFillPageAfterPage) {
  std::vector<std::string> expected;
  for (uint64_t round = 0; round < 100; ++round) {
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < 30; ++i) texts.push_back(number_key(round * 30 + i));
    stage_.commit_alone([&](Transaction& txn) { return insert_all(tree_, txn, texts); });
    expected.insert(expected.end(), texts.begin(), texts.end());
  }
  EXPECT_EQ(content(), expected);
}

TEST_F(InsertMany, StopsAtAKeyThatExists) {
  stage_.commit_alone([&](Transaction& txn) { return insert_all(tree_, txn, {number_key(5)}); });
  Transaction& a = stage_.a();
  for (const auto& texts : {std::vector{number_key(4), number_key(5), number_key(6)},
                            std::vector{number_key(7), number_key(8), number_key(8)}}) {
    ASSERT_EQ(a.begin(), Status::ok);
    EXPECT_EQ(insert_all(tree_, a, texts), Status::already_exists);
    a.rollback(Status::user_abort);
  }
  EXPECT_EQ(content(), std::vector{number_key(5)});
}

TEST_F(InsertMany, RefusesWhatInsertRefuses) {
  Transaction& a = stage_.a();
  const std::string too_long(MasterTree::kMaxKeyBytes + 1, 'k');
  const std::vector<Bytes> one = {bytes_of(too_long)};
  const std::vector<Bytes> none;
  ASSERT_EQ(a.begin(), Status::ok);
  EXPECT_EQ(tree_.insert_many(a, one, one), Status::key_too_long);
  EXPECT_EQ(tree_.insert_many(a, one, none), Status::invalid_argument);
  EXPECT_EQ(tree_.insert_many(a, none, none), Status::ok);
  a.rollback(Status::user_abort);
}

TEST_F(InsertMany, DoesNotDisturbTheOwnScanButEveryForeignOne) {
  stage_.commit_alone([&](Transaction& txn) { return insert_all(tree_, txn, {number_key(1)}); });
  Transaction& a = stage_.a();
  Transaction& b = stage_.b();
  for (Transaction* txn : {&a, &b}) {
    ASSERT_EQ(txn->begin(), Status::ok);
    MasterTreeCursor cursor(tree_, *txn, ScanRange{}, true);
    ASSERT_EQ(cursor.next(), Status::ok);
    ASSERT_EQ(cursor.next(), Status::end_of_scan);
  }
  ASSERT_EQ(insert_all(tree_, a, {number_key(2), number_key(3)}), Status::ok);
  EXPECT_EQ(a.commit(), Status::ok);
  EXPECT_EQ(b.commit(), Status::phantom);
}

TEST(Fences, LieBetweenAndAreRound) {
  EXPECT_EQ(fence_between(0x0001'a000'0000'0c1c, 0x0002'1000'0000'0835), 0x0002'0000'0000'0000u);
  EXPECT_EQ(fence_between(7, 8), 8u);
  EXPECT_EQ(fence_between(0, 1), 1u);
  EXPECT_EQ(fence_between(0, ~uint64_t{0}), uint64_t{1} << 63);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t left = random() >> (random() % 64);
    const uint64_t right = random() >> (random() % 64);
    if (left >= right) continue;
    const uint64_t fence = fence_between(left, right);
    ASSERT_LT(left, fence);
    ASSERT_LE(fence, right);
    // The next lower value with more trailing zero bits than the fence. It is at or below the left
    // key, so no value between the left key and the fence has more of them.
    const uint64_t rounder = fence & (fence - 1);
    ASSERT_LE(rounder, left);
  }
}

}  // namespace
}  // namespace atolldb::test
