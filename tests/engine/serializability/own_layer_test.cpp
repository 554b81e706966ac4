// A transaction that itself adds a layer still depends on the absences that it read. An insert into
// the new layer does not change the page above. Therefore the pages of the layer must be
// registered, too (R13).
#include <gtest/gtest.h>

#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {
namespace {

/// A transaction reads that "prefix01-third" is absent, and inserts "prefix01-second". This makes a
/// layer, because "prefix01-first" has the same slice. Then another transaction inserts the third.
class OwnLayer : public testing::Test {
 protected:
  static Bytes key(const char* text) { return bytes_view(text, std::strlen(text)); }

  OwnLayer() {
    CHECK(stage_.cluster().worker(1).run([&](Transaction& txn) {
      return tree_.insert(txn, key("prefix01-first"), {});
    }) == Status::ok);
  }

  Status foreign_insert(const char* text) {
    Transaction& b = stage_.b();
    Status status = b.begin();
    if (status == Status::ok) status = tree_.insert(b, key(text), {});
    return finish(b, status);
  }

  Stage stage_;
  MasterTree tree_{stage_.empty_tree("layered")};
  Transaction& a_ = stage_.a();
};

TEST_F(OwnLayer, ALookUpInTheNewLayerSeesAPhantom) {
  uint32_t bytes = 0;
  ASSERT_EQ(a_.begin(), Status::ok);
  ASSERT_EQ(tree_.get(a_, key("prefix01-third"), nullptr, 0, bytes), Status::not_found);
  ASSERT_EQ(tree_.insert(a_, key("prefix01-second"), {}), Status::ok);
  ASSERT_EQ(foreign_insert("prefix01-third"), Status::ok);
  EXPECT_EQ(a_.commit(), Status::phantom);
}

TEST_F(OwnLayer, AScanOfTheNewLayerSeesAPhantom) {
  ASSERT_EQ(a_.begin(), Status::ok);
  MasterTreeCursor cursor(tree_, a_, {}, true);
  ASSERT_EQ(cursor.next(), Status::ok);
  ASSERT_EQ(cursor.next(), Status::end_of_scan);
  ASSERT_EQ(tree_.insert(a_, key("prefix01-second"), {}), Status::ok);
  ASSERT_EQ(foreign_insert("prefix01-third"), Status::ok);
  EXPECT_EQ(a_.commit(), Status::phantom);
}

TEST_F(OwnLayer, AForeignInsertBetweenTheLayerAndTheOwnKeyIsSeen) {
  uint32_t bytes = 0;
  ASSERT_EQ(a_.begin(), Status::ok);
  ASSERT_EQ(tree_.get(a_, key("prefix01-third"), nullptr, 0, bytes), Status::not_found);
  ASSERT_EQ(tree_.insert(a_, key("prefix01-second"), {}), Status::ok);
  ASSERT_EQ(foreign_insert("prefix01-third"), Status::ok);
  const Status status = tree_.insert(a_, key("prefix01-fourth"), {});
  EXPECT_EQ(finish(a_, status), Status::phantom);
}

TEST_F(OwnLayer, ALookUpThenInsertInTheNewLayerDoesNotAbortItself) {
  uint32_t bytes = 0;
  ASSERT_EQ(a_.begin(), Status::ok);
  for (const char* text : {"prefix01-second", "prefix01-third", "prefix01-fourth"}) {
    ASSERT_EQ(tree_.get(a_, key(text), nullptr, 0, bytes), Status::not_found);
    ASSERT_EQ(tree_.insert(a_, key(text), {}), Status::ok);
  }
  EXPECT_EQ(a_.commit(), Status::ok);
}

}  // namespace
}  // namespace atolldb::test
