// The bodies of isolation_*.h with tiny pages: records constantly move, and tombstones are elided.
#include <gtest/gtest.h>

#include "tests/engine/transaction/isolation_others.h"
#include "tests/engine/transaction/isolation_rules.h"
#include "tests/engine/transaction/isolation_tree.h"

namespace atolldb::test {
namespace {

TEST(IsolationStress, ASnapshotOfATreeStaysAsItIsWhileTheTreeChanges) {
  EXPECT_EQ(tree_isolation_oracle(300, rounds(15, 400)), "");
  EXPECT_EQ(tree_isolation_oracle(300, rounds(15, 400), true), "") << "with a delta tree";
}

TEST(IsolationStress, ASnapshotOfAnArrayStaysAsItIsWhileTheArrayChanges) {
  EXPECT_EQ(array_isolation_oracle(500, rounds(200, 5000)), "");
}

TEST(IsolationStress, ASnapshotOfAHeapStaysAsItIsWhileOthersAppend) {
  EXPECT_EQ(sequential_isolation_oracle(rounds(20, 500)), "");
}

TEST(IsolationStress, AKeyThatItsPageHasElidedSinceTheSnapshotCountsAsChanged) {
  EXPECT_EQ(snapshot_write_of_a_key_that_was_elided(), "");
}

TEST(IsolationStress, TransfersKeepTheSumWithWhateverIsolation) {
  EXPECT_EQ(transfers_keep_the_sum(Kind::tree, rounds(2000, 200'000)), "");
}

}  // namespace
}  // namespace atolldb::test
