#include <gtest/gtest.h>

#include "tests/engine/snapshot/isolation_tree.h"

namespace atolldb::test {
namespace {

TEST(Isolation, ASnapshotOfATreeStaysAsItIsWhileTheTreeChanges) {
  EXPECT_EQ(tree_isolation_oracle(300, rounds(20, 400)), "");
  EXPECT_EQ(tree_isolation_oracle(5000, rounds(20, 400)), "");
}

}  // namespace
}  // namespace atolldb::test
