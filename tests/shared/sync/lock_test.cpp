// Locks of records and pages, and futex locks: one holder at a time, with any number of threads and
// processes. No wait outlives the cluster.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "shared/sync/mcs_lock.h"
#include "shared/sync/wait_word.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint32_t kWorkers = 16;

/// Locks in memory that child processes share.
struct Arena {
  WaitBlock blocks[kWorkers];
  McsWord word;
  McsWord second_word;
  McsWord many_words[McsLocker::kMostSleepers + 2];
  FutexLock futex;
  std::atomic<uint32_t> cluster_state;
  // The lock holder changes the counter by a plain load and store. A second holder would lose an
  // increment.
  std::atomic<uint64_t> counter;
  std::atomic<uint32_t> holders;
  std::atomic<uint32_t> violations;

  void work_as_holder() {
    if (holders.fetch_add(1, std::memory_order_relaxed) != 0) {
      violations.fetch_add(1, std::memory_order_relaxed);
    }
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    holders.fetch_sub(1, std::memory_order_relaxed);
  }
};

class Locks : public testing::Test {
 protected:
  static constexpr uint32_t kFailed = 3;

  Locks()
      : memory_(mmap(nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                     0)),
        arena_(*new(memory_) Arena{}) {
    space_.set_node(0, arena_.blocks, kWorkers);
  }
  ~Locks() override { munmap(memory_, sizeof(Arena)); }

  McsLocker locker(uint32_t worker) {
    const auto id = static_cast<WorkerId>(worker);
    return {space_, id, lock_code(id), arena_.cluster_state, kFailed};
  }
  /// Returns the name of the lock that a worker waits for; 0: it waits for no lock.
  uint64_t waits_for(uint32_t worker) const {
    return arena_.blocks[worker].lock_name.load(std::memory_order_relaxed);
  }
  /// Waits until a worker is the last one in the queue.
  void await_last_waiter(uint32_t worker) const { await_last_waiter(arena_.word, worker); }
  static void await_last_waiter(const McsWord& word, uint32_t worker) {
    const LockCode wanted = lock_code(static_cast<WorkerId>(worker));
    while (word.waiters.load(std::memory_order_acquire) != wanted) sched_yield();
  }
  uint32_t state_of(uint32_t worker) const {
    return arena_.blocks[worker].state.load(std::memory_order_relaxed);
  }
  static UniversalName name(uint64_t offset) {
    return UniversalName::make(VolatilePointer::make(0, 0, 1), offset);
  }
  void lock_often(uint32_t worker, uint64_t count) {
    McsLocker mine = locker(worker);
    for (uint64_t i = 0; i < count; ++i) {
      if (mine.lock(arena_.word, name(0)) != Status::ok) {
        arena_.violations.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      arena_.work_as_holder();
      mine.unlock(arena_.word);
    }
  }
  void expect_counted(uint64_t count) {
    EXPECT_EQ(arena_.counter.load(std::memory_order_relaxed), count);
    EXPECT_EQ(arena_.violations.load(std::memory_order_relaxed), 0);
    EXPECT_TRUE(arena_.word.is_unused());
    for (uint32_t worker = 0; worker < kWorkers; ++worker) EXPECT_EQ(waits_for(worker), 0);
  }
  template <typename Body>
  static void in_threads(uint32_t count, Body&& body) {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
    for (std::thread& thread : threads) thread.join();
  }

  void* memory_;
  Arena& arena_;
  LockSpace space_;
};

TEST_F(Locks, OneOfSixteenThreadsHoldsAnMcsLock) {
  const uint64_t count = rounds(3000, 300'000);
  in_threads(kWorkers, [&](uint32_t self) { lock_often(self, count); });
  expect_counted(kWorkers * count);
}

TEST_F(Locks, OneOfSeveralProcessesHoldsAnMcsLock) {
  const uint64_t count = rounds(5000, 500'000);
  constexpr uint32_t kProcesses = 4;
  std::vector<pid_t> children;
  for (uint32_t i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      lock_often(i, count);
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  expect_counted(kProcesses * count);
}

TEST_F(Locks, AWordNamesItsHolder) {
  McsLocker mine = locker(0);
  McsLocker other = locker(4);
  ASSERT_EQ(mine.lock(arena_.word, name(64)), Status::ok);
  EXPECT_TRUE(arena_.word.is_locked());
  EXPECT_TRUE(mine.holds(arena_.word));
  EXPECT_FALSE(other.holds(arena_.word));
  EXPECT_FALSE(other.try_lock(arena_.word));
  EXPECT_FALSE(mine.try_lock(arena_.word)) << "a worker has taken its own lock again";
  mine.unlock(arena_.word);
  EXPECT_FALSE(mine.holds(arena_.word));
  EXPECT_TRUE(other.try_lock(arena_.word));
  EXPECT_TRUE(other.holds(arena_.word));
  other.unlock(arena_.word);
  EXPECT_TRUE(arena_.word.is_unused());
}

TEST_F(Locks, TheNamesOfWorkersAreDistinctInLockWords) {
  EXPECT_EQ(lock_code(0), 1);
  const auto last = static_cast<WorkerId>((kMaxNodes - 1) << 8 | 0xff);
  EXPECT_LT(lock_code(last), kEarlyMark);
  EXPECT_NE(lock_code(0x00ff), lock_code(0x0100)) << "the last worker of a node is the next node's";
}

TEST_F(Locks, AWaitBlockNamesTheLockThatItsWorkerWaitsFor) {
  McsLocker mine = locker(3);
  ASSERT_EQ(mine.lock(arena_.word, name(64)), Status::ok);
  EXPECT_EQ(waits_for(3), 0) << "a worker that has waited for no lock";
  std::thread waiter([&] {
    McsLocker other = locker(4);
    EXPECT_EQ(other.lock(arena_.word, name(64)), Status::ok);
    other.unlock(arena_.word);
  });
  await_last_waiter(4);
  EXPECT_EQ(waits_for(4), name(64).word());
  mine.unlock(arena_.word);
  waiter.join();
  EXPECT_EQ(waits_for(4), 0);
  EXPECT_TRUE(arena_.word.is_unused());
}

TEST_F(Locks, AnEarlyLockHasAMarkUntilItBecomesAnOrdinaryOne) {
  McsLocker mine = locker(0);
  ASSERT_TRUE(mine.try_lock_early(arena_.word));
  EXPECT_TRUE(arena_.word.is_early());
  EXPECT_TRUE(mine.holds(arena_.word));
  EXPECT_FALSE(locker(1).try_lock(arena_.word));
  EXPECT_FALSE(locker(1).try_lock_early(arena_.word));
  EXPECT_TRUE(arena_.word.is_early()) << "a failed try has changed the mark";
  mine.end_early(arena_.word);
  EXPECT_FALSE(arena_.word.is_early());
  EXPECT_TRUE(mine.holds(arena_.word));
  EXPECT_FALSE(locker(1).try_lock(arena_.word));
  mine.unlock(arena_.word);
  EXPECT_TRUE(arena_.word.is_unused());
}

TEST_F(Locks, AWaiterHidesTheMarkOfAnEarlyLock) {
  McsLocker mine = locker(0);
  ASSERT_TRUE(mine.try_lock_early(arena_.word));
  std::atomic<bool> is_locked{false};
  std::thread waiter([&] {
    McsLocker other = locker(1);
    EXPECT_EQ(other.lock(arena_.word, name(0)), Status::ok);
    is_locked.store(true, std::memory_order_release);
    other.unlock(arena_.word);
  });
  await_last_waiter(1);
  EXPECT_FALSE(arena_.word.is_early());
  mine.end_early(arena_.word);
  EXPECT_EQ(arena_.word.waiters.load(std::memory_order_relaxed), lock_code(1))
      << "the end of the mark has removed the waiter";
  EXPECT_FALSE(is_locked.load(std::memory_order_acquire));
  EXPECT_TRUE(mine.holds(arena_.word));
  mine.unlock(arena_.word);
  waiter.join();
  EXPECT_TRUE(arena_.word.is_unused());
}

/// Threads of all kinds: some wait, some only try, some lock early. Each runs `count` critical
/// sections. There are more threads than cores, and some holders yield their core.
TEST_F(Locks, OneOfManyThreadsHoldsALockThatIsAlsoTriedAndLockedEarly) {
  const uint64_t count = rounds(3000, 300'000);
  const uint64_t chosen = seed();
  in_threads(kWorkers, [&](uint32_t self) {
    McsLocker mine = locker(self);
    std::mt19937_64 random(chosen + self);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t drawn = random();
      const uint64_t kind = drawn % 4;  // 0, 1: early; 2: tried; 3: waits at once
      const bool is_early = kind < 2 && mine.try_lock_early(arena_.word);
      if (!is_early && !(kind == 2 && mine.try_lock(arena_.word))) {
        EXPECT_EQ(mine.lock(arena_.word, name(0)), Status::ok);
      }
      // An early lock becomes an ordinary one before the work or after it.
      if (is_early && kind == 0) mine.end_early(arena_.word);
      arena_.work_as_holder();
      if ((drawn >> 32) % 64 == 0) sched_yield();
      if (is_early && kind == 1) mine.end_early(arena_.word);
      mine.unlock(arena_.word);
    }
  });
  expect_counted(kWorkers * count);
}

/// Other threads take the lock all the time, but those that come after a waiter do not pass it.
TEST_F(Locks, AWaiterGetsTheLockBeforeThreadsThatComeAfterIt) {
  for (uint64_t round = 0; round < rounds(20, 2000); ++round) {
    McsLocker mine = locker(0);
    ASSERT_EQ(mine.lock(arena_.word, name(0)), Status::ok);
    uint64_t passed = ~uint64_t{0};
    std::atomic<bool> has_ended{false};
    const uint64_t before = arena_.counter.load(std::memory_order_relaxed);
    std::thread waiter([&] {
      McsLocker other = locker(1);
      EXPECT_EQ(other.lock(arena_.word, name(0)), Status::ok);
      passed = arena_.counter.load(std::memory_order_relaxed) - before;
      other.unlock(arena_.word);
      has_ended.store(true, std::memory_order_release);
    });
    await_last_waiter(1);
    std::vector<std::thread> others;
    for (uint32_t self = 2; self < 6; ++self) {
      others.emplace_back([&, self] {
        McsLocker other = locker(self);
        while (!has_ended.load(std::memory_order_acquire)) {
          const bool is_locked = self % 2 == 0 ? other.try_lock(arena_.word)
                                               : other.lock(arena_.word, name(0)) == Status::ok;
          if (!is_locked) continue;
          arena_.work_as_holder();
          other.unlock(arena_.word);
        }
      });
    }
    while (waits_for(3) == 0 || waits_for(5) == 0) sched_yield();
    mine.unlock(arena_.word);
    waiter.join();
    for (std::thread& other : others) other.join();
    EXPECT_EQ(passed, 0) << "other threads have passed the waiter";
  }
  EXPECT_TRUE(arena_.word.is_unused());
  EXPECT_EQ(arena_.violations.load(std::memory_order_relaxed), 0);
}

/// No thread wakes the head of a queue, so it must find the free lock by itself.
TEST_F(Locks, AWaiterThatSleepsGetsTheLock) {
  McsLocker mine = locker(0);
  ASSERT_EQ(mine.lock(arena_.word, name(0)), Status::ok);
  std::vector<std::thread> waiters;
  for (uint32_t self = 1; self < 5; ++self) {
    waiters.emplace_back([&, self] { lock_often(self, 1); });
  }
  for (uint32_t self = 1; self < 5; ++self) {
    while (waits_for(self) == 0) sched_yield();
  }
  // Three wait for the head, so they sleep until they get its role. The head naps by then.
  const auto sleeps = [&](const WaitBlock& block) {
    return block.state.load(std::memory_order_relaxed) == WaitBlock::kSleeping;
  };
  while (std::ranges::count_if(arena_.blocks, sleeps) != 3) sched_yield();
  mine.unlock(arena_.word);
  for (std::thread& waiter : waiters) waiter.join();
  expect_counted(4);
}

/// A thread gets locks for each of which another thread sleeps. It wakes only those that it has no
/// room to record. Each of the others stays asleep until the thread unlocks.
TEST_F(Locks, AThreadRecordsALimitedNumberOfSleepers) {
  constexpr uint32_t kLocks = McsLocker::kMostSleepers + 2;
  constexpr uint32_t kFirstSleeper = 2;
  static_assert(kFirstSleeper + kLocks <= kWorkers);
  McsLocker mine = locker(0);
  for (McsWord& word : arena_.many_words) ASSERT_TRUE(mine.try_lock(word));
  std::atomic<uint32_t> taken{0};
  std::atomic<bool> may_unlock{false};
  std::thread taker([&] {
    McsLocker other = locker(1);
    for (uint32_t i = 0; i < kLocks; ++i) {
      EXPECT_EQ(other.lock(arena_.many_words[i], name(8 * i)), Status::ok);
      taken.store(i + 1, std::memory_order_release);
    }
    while (!may_unlock.load(std::memory_order_acquire)) sched_yield();
    EXPECT_TRUE(other.has_sleepers());
    // The order differs from that of the locks. The first half is released before it is woken.
    for (uint32_t i = kLocks; i-- > kLocks / 2;) other.unlock(arena_.many_words[i]);
    for (uint32_t i = 0; i < kLocks / 2; ++i) other.release(arena_.many_words[i]);
    for (uint32_t i = 0; i < kLocks / 2; ++i) other.wake_sleeper(arena_.many_words[i]);
    EXPECT_FALSE(other.has_sleepers());
  });
  std::vector<std::thread> sleepers;
  for (uint32_t i = 0; i < kLocks; ++i) {
    McsWord& word = arena_.many_words[i];
    const uint32_t self = kFirstSleeper + i;
    await_last_waiter(word, 1);
    sleepers.emplace_back([&, i, self] {
      McsLocker sleeper = locker(self);
      EXPECT_EQ(sleeper.lock(arena_.many_words[i], name(8 * i)), Status::ok);
      arena_.counter.fetch_add(1, std::memory_order_relaxed);
      sleeper.unlock(arena_.many_words[i]);
    });
    await_last_waiter(word, self);
    while (state_of(self) != WaitBlock::kSleeping) sched_yield();
    mine.unlock(word);
    while (taken.load(std::memory_order_acquire) != i + 1) sched_yield();
  }
  for (uint32_t i = 0; i < kLocks; ++i) {
    const bool sleeps = state_of(kFirstSleeper + i) == WaitBlock::kSleeping;
    EXPECT_EQ(sleeps, i < McsLocker::kMostSleepers) << "sleeper " << i;
  }
  may_unlock.store(true, std::memory_order_release);
  taker.join();
  for (std::thread& sleeper : sleepers) sleeper.join();
  for (const McsWord& word : arena_.many_words) EXPECT_TRUE(word.is_unused());
  expect_counted(kLocks);
}

TEST_F(Locks, OneThreadHoldsSeveralMcsLocksAtOnce) {
  const uint64_t count = rounds(3000, 300'000);
  in_threads(4, [&](uint32_t self) {
    McsLocker mine = locker(self);
    for (uint64_t i = 0; i < count; ++i) {
      EXPECT_EQ(mine.lock(arena_.word, name(0)), Status::ok);
      EXPECT_EQ(mine.lock(arena_.second_word, name(8)), Status::ok);
      arena_.work_as_holder();
      mine.unlock(arena_.word);
      mine.unlock(arena_.second_word);
    }
  });
  expect_counted(4 * count);
  EXPECT_TRUE(arena_.second_word.is_unused());
}

TEST_F(Locks, AFailedClusterEndsEveryWaitForAnMcsLock) {
  McsLocker holder = locker(0);  // never unlocks, as if its process died
  ASSERT_EQ(holder.lock(arena_.word, name(0)), Status::ok);
  std::atomic<uint32_t> ended{0};
  std::vector<std::thread> waiters;
  for (uint32_t self = 1; self <= 4; ++self) {
    waiters.emplace_back([&, self] {
      McsLocker mine = locker(self);
      EXPECT_EQ(mine.lock(arena_.word, name(0)), Status::cluster_failed);
      ended.fetch_add(1, std::memory_order_release);
    });
  }
  for (uint32_t self = 1; self <= 4; ++self) {
    while (waits_for(self) == 0) std::this_thread::yield();
  }
  EXPECT_EQ(ended.load(std::memory_order_acquire), 0) << "a worker got a lock that is held";
  arena_.cluster_state.store(kFailed, std::memory_order_release);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(ended.load(std::memory_order_relaxed), 4);
  // A worker that has given up does not queue again, so its block stays in the queue.
  McsLocker again = locker(1);
  const uint64_t waited_for = waits_for(1);
  EXPECT_EQ(again.lock(arena_.word, name(8)), Status::cluster_failed);
  EXPECT_EQ(waits_for(1), waited_for);
  EXPECT_EQ(again.lock(arena_.second_word, name(8)), Status::ok) << "the other lock is free";
  again.unlock(arena_.second_word);
}

/// The holder dies while it holds the lock early. The waiter has replaced the mark.
TEST_F(Locks, AFailedClusterEndsTheWaitForAnEarlyLock) {
  McsLocker holder = locker(0);
  ASSERT_TRUE(holder.try_lock_early(arena_.word));
  std::thread waiter([&] {
    McsLocker mine = locker(1);
    EXPECT_EQ(mine.lock(arena_.word, name(0)), Status::cluster_failed);
  });
  await_last_waiter(1);
  arena_.cluster_state.store(kFailed, std::memory_order_release);
  waiter.join();
  EXPECT_TRUE(holder.holds(arena_.word));
}

TEST_F(Locks, OneOfSixteenThreadsHoldsAFutexLock) {
  const uint64_t count = rounds(3000, 300'000);
  in_threads(kWorkers, [&](uint32_t) {
    for (uint64_t i = 0; i < count; ++i) {
      const std::lock_guard guard(arena_.futex);
      arena_.work_as_holder();
    }
  });
  expect_counted(kWorkers * count);
  EXPECT_TRUE(arena_.futex.try_lock());
  EXPECT_FALSE(arena_.futex.try_lock());
  arena_.futex.unlock();
}

#ifdef ATOLL_DCHECK
using LocksDeathTest = Locks;

TEST_F(LocksDeathTest, AFutexLockIsUnlockedOnlyWhileItIsHeld) {
  EXPECT_DEATH(arena_.futex.unlock(), "kFree");
}

TEST_F(LocksDeathTest, OnlyTheHolderUnlocks) {
  McsLocker mine = locker(0);
  EXPECT_DEATH(mine.unlock(arena_.word), "holds");
  ASSERT_TRUE(mine.try_lock(arena_.word));
  EXPECT_DEATH(locker(1).unlock(arena_.word), "holds");
  mine.unlock(arena_.word);
}

TEST_F(LocksDeathTest, AThreadDoesNotWaitForItself) {
  McsLocker mine = locker(0);
  ASSERT_TRUE(mine.try_lock(arena_.word));
  EXPECT_DEATH((void)mine.lock(arena_.word, name(0)), "holds");
  mine.unlock(arena_.word);
}

TEST_F(LocksDeathTest, AMarkEndsBeforeTheLock) {
  McsLocker mine = locker(0);
  ASSERT_TRUE(mine.try_lock_early(arena_.word));
  EXPECT_DEATH(mine.unlock(arena_.word), "kEarlyMark");
  mine.end_early(arena_.word);
  mine.unlock(arena_.word);
}

TEST_F(LocksDeathTest, AWorkerBeyondThoseOfItsNodeIsRefused) {
  EXPECT_DEATH((void)locker(kWorkers), "count");
}
#endif

TEST_F(Locks, AWaiterIsWokenByAnotherProcess) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    arena_.futex.lock();
    arena_.holders.store(1, std::memory_order_release);
    // Waits until the parent reports that it is about to wait.
    while (arena_.violations.load(std::memory_order_acquire) == 0) sched_yield();
    arena_.futex.unlock();
    _exit(0);
  }
  while (arena_.holders.load(std::memory_order_acquire) == 0) sched_yield();
  arena_.violations.store(1, std::memory_order_release);
  arena_.futex.lock();
  arena_.futex.unlock();
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace atolldb::test
