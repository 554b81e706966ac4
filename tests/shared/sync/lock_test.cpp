// MCS locks and futex locks: one holder at a time, with any number of threads and processes. No
// wait outlives the cluster.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "shared/sync/mcs_lock.h"
#include "shared/sync/wait_word.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint32_t kWorkers = 16;
constexpr uint32_t kBlocks = 4;
constexpr uint32_t kEarlyBlock = kBlocks - 1;  // the only block for early locks

/// Locks in memory that child processes share.
struct Arena {
  McsBlock blocks[kWorkers * kBlocks];
  McsWord word;
  McsWord second_word;
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
    space_.set_node(0, arena_.blocks, kBlocks, 1);
  }
  ~Locks() override { munmap(memory_, sizeof(Arena)); }

  McsLocker locker(uint32_t worker) {
    return {space_, static_cast<WorkerId>(worker), arena_.cluster_state, kFailed};
  }
  uint32_t tail() const { return arena_.word.tail.load(std::memory_order_seq_cst); }
  const McsBlock& block(uint32_t worker, uint32_t index) const {
    return arena_.blocks[worker * kBlocks + index];
  }
  static UniversalName name(uint64_t offset) {
    return UniversalName::make(VolatilePointer::make(0, 0, 1), offset);
  }
  void lock_often(uint32_t worker, uint64_t count) {
    McsLocker mine = locker(worker);
    for (uint64_t i = 0; i < count; ++i) {
      const auto block = static_cast<uint32_t>(1 + i % (kBlocks - 1));
      if (mine.lock(arena_.word, block, name(0)) != Status::ok) {
        arena_.violations.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      arena_.work_as_holder();
      mine.unlock(arena_.word, block);
    }
  }
  void expect_counted(uint64_t count) {
    EXPECT_EQ(arena_.counter.load(std::memory_order_relaxed), count);
    EXPECT_EQ(arena_.violations.load(std::memory_order_relaxed), 0);
    EXPECT_FALSE(arena_.word.is_locked());
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

TEST_F(Locks, AnMcsBlockNamesItsLockWhileItIsUsed) {
  McsLocker mine = locker(3);
  McsBlock& block = arena_.blocks[3 * kBlocks + 2];
  ASSERT_EQ(mine.lock(arena_.word, 2, name(64)), Status::ok);
  EXPECT_EQ(block.lock_name.load(std::memory_order_relaxed), name(64).word());
  McsLocker other = locker(4);
  EXPECT_FALSE(other.try_lock(arena_.word, 1, name(64)));
  EXPECT_EQ(arena_.blocks[4 * kBlocks + 1].lock_name.load(std::memory_order_relaxed), 0)
      << "a block that failed to lock still names the lock";
  mine.unlock(arena_.word, 2);
  EXPECT_EQ(block.lock_name.load(std::memory_order_relaxed), 0);
  EXPECT_TRUE(other.try_lock(arena_.word, 1, name(64)));
  other.unlock(arena_.word, 1);
}

TEST_F(Locks, TheWordOfAnEarlyLockNamesABlockForEarlyLocks) {
  McsLocker mine = locker(0);
  ASSERT_TRUE(mine.try_lock(arena_.word, kEarlyBlock, name(0)));
  EXPECT_TRUE(space_.is_early(tail()));
  mine.change_block(arena_.word, kEarlyBlock, 1);
  EXPECT_FALSE(space_.is_early(tail()));
  EXPECT_EQ(block(0, kEarlyBlock).lock_name.load(std::memory_order_relaxed), 0);
  EXPECT_EQ(block(0, 1).lock_name.load(std::memory_order_relaxed), name(0).word());
  EXPECT_FALSE(locker(1).try_lock(arena_.word, 1, name(0)));
  mine.unlock(arena_.word, 1);
  EXPECT_FALSE(arena_.word.is_locked());
  EXPECT_EQ(block(0, 1).lock_name.load(std::memory_order_relaxed), 0);
}

TEST_F(Locks, WaitersFollowALockToAnotherBlock) {
  McsLocker mine = locker(0);
  McsLocker other = locker(1);
  ASSERT_TRUE(mine.try_lock(arena_.word, kEarlyBlock, name(0)));
  std::atomic<bool> is_locked{false};
  std::thread waiter([&] {
    EXPECT_EQ(other.lock(arena_.word, 1, name(0)), Status::ok);
    is_locked.store(true, std::memory_order_release);
    other.unlock(arena_.word, 1);
  });
  while (tail() >> 16 != 1) std::this_thread::yield();
  EXPECT_FALSE(space_.is_early(tail())) << "the waiter hides the mark";
  mine.change_block(arena_.word, kEarlyBlock, 1);
  EXPECT_FALSE(is_locked.load(std::memory_order_acquire));
  // The old block is free for another lock, while the waiter waits for the new one.
  EXPECT_TRUE(mine.try_lock(arena_.second_word, kEarlyBlock, name(1)));
  mine.unlock(arena_.second_word, kEarlyBlock);
  mine.unlock(arena_.word, 1);
  waiter.join();
  EXPECT_FALSE(arena_.word.is_locked());
}

TEST_F(Locks, OneOfManyThreadsHoldsALockThatChangesItsBlock) {
  const uint64_t count = rounds(3000, 300'000);
  in_threads(kWorkers, [&](uint32_t self) {
    McsLocker mine = locker(self);
    for (uint64_t i = 0; i < count; ++i) {
      const bool is_early = (i + self) % 3 == 0 && mine.try_lock(arena_.word, kEarlyBlock, name(0));
      if (!is_early) {
        EXPECT_EQ(mine.lock(arena_.word, 1, name(0)), Status::ok);
      }
      arena_.work_as_holder();
      if (is_early && i % 2 == 0) {
        mine.unlock(arena_.word, kEarlyBlock);
        continue;
      }
      if (is_early) mine.change_block(arena_.word, kEarlyBlock, 1);
      mine.unlock(arena_.word, 1);
    }
  });
  expect_counted(kWorkers * count);
}

TEST_F(Locks, OneThreadHoldsSeveralMcsLocksAtOnce) {
  const uint64_t count = rounds(3000, 300'000);
  in_threads(4, [&](uint32_t self) {
    McsLocker mine = locker(self);
    for (uint64_t i = 0; i < count; ++i) {
      EXPECT_EQ(mine.lock(arena_.word, 1, name(0)), Status::ok);
      EXPECT_EQ(mine.lock(arena_.second_word, 2, name(8)), Status::ok);
      arena_.work_as_holder();
      mine.unlock(arena_.word, 1);
      mine.unlock(arena_.second_word, 2);
    }
  });
  expect_counted(4 * count);
  EXPECT_FALSE(arena_.second_word.is_locked());
}

TEST_F(Locks, AFailedClusterEndsEveryWaitForAnMcsLock) {
  McsLocker holder = locker(0);  // never unlocks, as if its process died
  ASSERT_EQ(holder.lock(arena_.word, 1, name(0)), Status::ok);
  std::atomic<uint32_t> ended{0};
  std::vector<std::thread> waiters;
  for (uint32_t self = 1; self <= 4; ++self) {
    waiters.emplace_back([&, self] {
      McsLocker mine = locker(self);
      EXPECT_EQ(mine.lock(arena_.word, 1, name(0)), Status::cluster_failed);
      ended.fetch_add(1, std::memory_order_release);
    });
  }
  const auto is_queued = [&](uint32_t self) {
    return arena_.blocks[self * kBlocks + 1].lock_name.load(std::memory_order_relaxed) != 0;
  };
  for (uint32_t self = 1; self <= 4; ++self) {
    while (!is_queued(self)) std::this_thread::yield();
  }
  EXPECT_EQ(ended.load(std::memory_order_acquire), 0) << "a worker got a lock that is held";
  arena_.cluster_state.store(kFailed, std::memory_order_release);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(ended.load(std::memory_order_relaxed), 4);
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

TEST_F(LocksDeathTest, ABlockBeyondThoseOfItsWorkerIsRefused) {
  McsLocker mine = locker(0);
  EXPECT_DEATH((void)mine.try_lock(arena_.word, kBlocks, name(0)), "blocks_per_worker");
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
