// The bodies of reservation_window.h on the ordinary engine, and a race for a new key.
#include "tests/engine/mastertree/reservation_window.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

namespace atolldb::test {
namespace {

TEST(ReservationWindow, LookUpThenForeignCommit) {
  EXPECT_EQ(foreign_commit_of_a_reserved_key(false, false), "");
}
TEST(ReservationWindow, ScanThenForeignCommit) {
  EXPECT_EQ(foreign_commit_of_a_reserved_key(true, false), "");
}
TEST(ReservationWindow, LookUpOfATombstoneThenForeignCommit) {
  EXPECT_EQ(foreign_commit_of_a_reserved_key(false, true), "");
}
TEST(ReservationWindow, ScanOfADeadRecordThenForeignCommit) {
  EXPECT_EQ(foreign_commit_of_a_reserved_key(true, true), "");
}
TEST(BlindWrites, AScanOfOneThatDiedThenAWrite) {
  EXPECT_EQ(scan_of_an_own_blind_write_that_died(false), "");
}
TEST(BlindWrites, AScanOfOneThatDiedThenAnErase) {
  EXPECT_EQ(scan_of_an_own_blind_write_that_died(true), "");
}
TEST(BlindWrites, AScanOfOneThatDiedThenAUserAbort) {
  EXPECT_EQ(user_abort_after_a_scan_of_an_own_blind_write_that_died(), "");
}
TEST(BlindWrites, AWriteOverAnIncrementThenAForeignErase) {
  EXPECT_EQ(write_over_an_increment_of_a_key_that_died(true), "");
}
TEST(BlindWrites, AForeignEraseThenAWriteOverAnIncrement) {
  EXPECT_EQ(write_over_an_increment_of_a_key_that_died(false), "");
}

/// Two threads meet at a new key in every round. One thread looks the key up and inserts it, the
/// other writes the key blindly. No transaction may see the key both absent and present.
TEST(ReservationWindow, NoTransactionSeesAKeyAbsentAndPresent) {
  const uint64_t rounds = std::getenv("ATOLL_LONG") != nullptr ? 20'000'000 : 30'000;
  TestCluster cluster(2, 1);
  const Table table(Kind::tree, cluster.create("tree", StorageType::mastertree, 8));
  std::atomic<uint64_t> round{0};
  std::atomic<uint64_t> done{0};
  uint64_t wrong = 0;
  uint64_t failed = 0;
  cluster.run_threads([&](uint32_t self, TestWorker& worker) {
    for (uint64_t key = 1; key <= rounds; ++key) {
      if (self == 0) {
        round.store(key, std::memory_order_release);
        bool both = false;
        const Status status = worker.run([&](Transaction& txn) {
          uint64_t value = 0;
          both = false;
          const Status looked = table.get(txn, key, value);
          if (looked != Status::not_found) return looked;
          const Status inserted = table.insert(txn, key, 1);
          both = inserted == Status::already_exists;
          return both ? Status::ok : inserted;
        });
        if (status != Status::ok) ++failed;
        if (status == Status::ok && both) ++wrong;
        while (done.load(std::memory_order_acquire) < key) sched_yield();
      } else {
        while (round.load(std::memory_order_acquire) < key) sched_yield();
        if (worker.run([&](Transaction& txn) { return table.put(txn, key, 2); }) != Status::ok) {
          // The other thread now waits until the test's time limit, which reports the failure.
          return;
        }
        done.store(key, std::memory_order_release);
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(failed, 0u);
}

}  // namespace
}  // namespace atolldb::test
