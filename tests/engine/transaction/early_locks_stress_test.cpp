// Early locks while tiny pages are split under them.
#include <gtest/gtest.h>

#include "tests/engine/transaction/early_lock_transfers.h"

namespace atolldb::test {
namespace {

TEST(EarlyLocksStress, TransfersEndWhilePagesAreSplit) {
  const uint64_t chosen = seed();
  for (const uint64_t accounts : {3u, 40u}) {
    uint64_t taken = 0;
    EXPECT_EQ(transfers_with_early_locks({.kind = Kind::tree,
                                          .workers = 6,
                                          .transfers = rounds(2000, 200'000),
                                          .accounts = accounts,
                                          .inserts = true,
                                          .seed = chosen},
                                         taken),
              "");
    if (accounts == 3) {
      EXPECT_GT(taken, 0) << "no transfer has locked an account early";
    }
  }
}

}  // namespace
}  // namespace atolldb::test
