#include "shared/sync/wait_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace atolldb {

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);

void wait_on(const std::atomic<uint32_t>& word, uint32_t expected,
             std::chrono::nanoseconds timeout) {
  CHECK(timeout.count() >= 0);
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(timeout.count() / 1'000'000'000);
  limit.tv_nsec = static_cast<long>(timeout.count() % 1'000'000'000);
  const long result = syscall(SYS_futex, &word, FUTEX_WAIT, expected, &limit, nullptr, 0);
  // EINVAL would mean invalid arguments. The caller would then call this function in a loop,
  // without sleeping. All other errors are regular ends of the wait, or a lack of memory.
  CHECK(result == 0 || errno != EINVAL);
}

void wake(const std::atomic<uint32_t>& word, int count) {
  CHECK(count > 0);
  syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

void full_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace atolldb
