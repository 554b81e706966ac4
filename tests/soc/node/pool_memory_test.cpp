// The memory of a pool that is allocated in the background.
#include "soc/node/pool_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "shared/memory/segment_file.h"

namespace atolldb {
namespace {

constexpr uint64_t kMore = uint64_t{70} << 20;  // more than two steps

/// Address space of a pool, without memory.
class Pool {
 public:
  explicit Pool(uint64_t bytes) : bytes_(bytes) {
    base_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(base_, MAP_FAILED);
  }
  ~Pool() { munmap(base_, bytes_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::byte* base() const { return static_cast<std::byte*>(base_); }
  /// Returns the bytes of the pages that have memory, from `from` on.
  uint64_t resident_bytes(uint64_t from) const {
    std::vector<unsigned char> resident((bytes_ - from) / 4096);
    EXPECT_EQ(mincore(base() + from, bytes_ - from, resident.data()), 0);
    uint64_t count = 0;
    for (const unsigned char page : resident) count += page & 1;
    return count * 4096;
  }

 private:
  uint64_t bytes_;
  void* base_;
};

void fail_if_called(const Error& error) { ADD_FAILURE() << error.message; }

/// Settings for a pool whose pages are all in use, so no idle processors are needed.
PoolMemorySettings settings_of(const Pool& pool, uint64_t bytes) {
  return {.segment = "node0.pool",
          .base = pool.base(),
          .bytes = bytes,
          .cpus = {},
          .used_bytes = [bytes] { return bytes; },
          .on_failure = fail_if_called};
}

TEST(PoolMemoryTest, AllAfterTheBeginIsAllocatedAndItsContentStays) {
  Pool pool(kPoolBytesAtStart + kMore);
  std::byte& written = pool.base()[kPoolBytesAtStart + (uint64_t{5} << 20)];
  written = std::byte{42};  // a worker may use a page before the thread reaches it
  PoolMemory memory(settings_of(pool, kPoolBytesAtStart + kMore), make_silent_logger("node"));
  while (memory.unallocated_bytes() != 0) std::this_thread::yield();
  EXPECT_EQ(pool.resident_bytes(kPoolBytesAtStart), kMore);
  EXPECT_EQ(pool.resident_bytes(0), kMore) << "the begin is allocated before";
  EXPECT_EQ(written, std::byte{42});
}

TEST(PoolMemoryTest, AShortPoolNeedsNoThread) {
  for (const uint64_t bytes : {uint64_t{2} << 20, kPoolBytesAtStart}) {
    Pool pool(bytes);
    const PoolMemory memory(settings_of(pool, bytes), make_silent_logger("node"));
    EXPECT_EQ(memory.unallocated_bytes(), 0u);
    EXPECT_EQ(pool.resident_bytes(0), 0u);
  }
}

/// The processor with the number 4095 does not exist, so it is never idle.
TEST(PoolMemoryTest, OnABusyMachineOnlyMemoryAheadOfTheWorkersIsAllocated) {
  constexpr uint64_t kBytes = kPoolBytesAtStart + 3 * kPoolBytesAhead;
  Pool pool(kBytes);
  std::atomic<uint64_t> used{0};
  PoolMemorySettings settings = settings_of(pool, kBytes);
  settings.cpus = {4095};
  settings.used_bytes = [&] { return used.load(std::memory_order_relaxed); };
  PoolMemory memory(settings, make_silent_logger("node"));
  for (const uint64_t now : {uint64_t{0}, kPoolBytesAhead}) {
    used.store(now, std::memory_order_relaxed);
    const uint64_t wanted = now + kPoolBytesAhead;
    while (kBytes - memory.unallocated_bytes() < wanted) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(600));  // more than two readings
    EXPECT_LT(kBytes - memory.unallocated_bytes(), wanted + (uint64_t{16} << 20)) << now;
  }
}

TEST(PoolMemoryTest, WithoutKnownProcessorsAllIsAllocatedSlowly) {
  constexpr uint64_t kBytes = kPoolBytesAtStart + kPoolBytesAhead + kMore;
  Pool pool(kBytes);
  PoolMemorySettings settings = settings_of(pool, kBytes);
  settings.used_bytes = [] { return uint64_t{0}; };
  PoolMemory memory(settings, make_silent_logger("node"));
  while (memory.unallocated_bytes() != 0) std::this_thread::yield();
  EXPECT_EQ(pool.resident_bytes(kPoolBytesAtStart), kBytes - kPoolBytesAtStart);
}

TEST(PoolMemoryTest, EndsBeforeAllIsAllocated) {
  constexpr uint64_t kHuge = uint64_t{1} << 40;  // more than any machine of a test has
  Pool pool(kHuge);
  PoolMemorySettings settings = settings_of(pool, kHuge);
  settings.on_failure = [](const Error&) {};
  {
    const PoolMemory memory(settings, make_silent_logger("node"));
  }
  EXPECT_LT(pool.resident_bytes(kHuge - kMore), kMore);
}

TEST(PoolMemoryTest, MissingMemoryIsReportedOnce) {
  Pool pool(kPoolBytesAtStart + kMore);
  // The kernel refuses memory for addresses that are not mapped, as if it had none left.
  ASSERT_EQ(munmap(pool.base() + kPoolBytesAtStart + (kMore >> 1), kMore >> 1), 0);
  std::vector<Error> errors;
  std::atomic<bool> has_failed{false};
  {
    PoolMemorySettings settings = settings_of(pool, kPoolBytesAtStart + kMore);
    settings.on_failure = [&](const Error& error) {
      errors.push_back(error);
      has_failed.store(true, std::memory_order_release);
    };
    const PoolMemory memory(settings, make_silent_logger("node"));
    while (!has_failed.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].code, ExitCode::resources);
  EXPECT_TRUE(errors[0].message.starts_with("segment node0.pool: ")) << errors[0].message;
}

}  // namespace
}  // namespace atolldb
