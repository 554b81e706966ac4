#include "shared/base/fork_count.h"

#include <pthread.h>

#include <atomic>

#include "shared/base/check.h"

namespace atolldb {
namespace {

std::atomic<uint32_t> forks_since_first_call{0};

}  // namespace

uint32_t fork_count() {
  static const int registered = pthread_atfork(
      nullptr, nullptr, [] { forks_since_first_call.fetch_add(1, std::memory_order_relaxed); });
  CHECK(registered == 0);  // an error would be a lack of memory
  return forks_since_first_call.load(std::memory_order_relaxed);
}

}  // namespace atolldb
