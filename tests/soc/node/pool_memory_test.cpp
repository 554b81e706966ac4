// The memory of a pool that is allocated in the background.
#include "soc/node/pool_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>
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

TEST(PoolMemoryTest, AllAfterTheBeginIsAllocatedAndItsContentStays) {
  Pool pool(kPoolBytesAtStart + kMore);
  std::byte& written = pool.base()[kPoolBytesAtStart + (uint64_t{5} << 20)];
  written = std::byte{42};  // a worker may use a page before the thread reaches it
  PoolMemory memory("pool", pool.base(), kPoolBytesAtStart + kMore, fail_if_called,
                    make_silent_logger("node"));
  while (memory.allocated_bytes() < kPoolBytesAtStart + kMore) std::this_thread::yield();
  EXPECT_EQ(pool.resident_bytes(kPoolBytesAtStart), kMore);
  EXPECT_EQ(pool.resident_bytes(0), kMore) << "the begin is allocated before";
  EXPECT_EQ(written, std::byte{42});
}

TEST(PoolMemoryTest, AShortPoolNeedsNoThread) {
  for (const uint64_t bytes : {uint64_t{2} << 20, kPoolBytesAtStart}) {
    Pool pool(bytes);
    const PoolMemory memory("pool", pool.base(), bytes, fail_if_called, make_silent_logger("node"));
    EXPECT_EQ(memory.allocated_bytes(), bytes);
    EXPECT_EQ(pool.resident_bytes(0), 0u);
  }
}

TEST(PoolMemoryTest, EndsBeforeAllIsAllocated) {
  constexpr uint64_t kHuge = uint64_t{1} << 40;  // more than any machine of a test has
  Pool pool(kHuge);
  PoolMemory("pool", pool.base(), kHuge, [](const Error&) {}, make_silent_logger("node"));
  EXPECT_LT(pool.resident_bytes(kHuge - kMore), kMore);
}

TEST(PoolMemoryTest, MissingMemoryIsReportedOnce) {
  Pool pool(kPoolBytesAtStart + kMore);
  // The kernel refuses memory for addresses that are not mapped, as if it had none left.
  ASSERT_EQ(munmap(pool.base() + kPoolBytesAtStart + (kMore >> 1), kMore >> 1), 0);
  std::vector<Error> errors;
  std::atomic<bool> has_failed{false};
  {
    const PoolMemory memory(
        "node0.pool", pool.base(), kPoolBytesAtStart + kMore,
        [&](const Error& error) {
          errors.push_back(error);
          has_failed.store(true, std::memory_order_release);
        },
        make_silent_logger("node"));
    while (!has_failed.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].code, ExitCode::resources);
  EXPECT_TRUE(errors[0].message.starts_with("segment node0.pool: ")) << errors[0].message;
}

}  // namespace
}  // namespace atolldb
