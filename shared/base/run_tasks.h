// Independent tasks that may run on several threads. The engine creates no threads, so its callers
// hand it a `RunTasks`.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/error.h"

namespace atolldb {

/// Calls task(0) ... task(count - 1), each once, in any order, and returns after all have returned.
/// Calls may overlap. REQUIRES: `task` throws nothing.
using RunTasks = std::function<void(size_t count, const std::function<void(size_t)>& task)>;

/// A RunTasks that makes all calls on the calling thread.
inline void run_in_turn(size_t count, const std::function<void(size_t)>& task) {
  for (size_t number = 0; number < count; ++number) task(number);
}

/// Returns a RunTasks that uses at most `threads` threads, and no more than there are tasks. The
/// calling thread is one of them. REQUIRES: `threads` is at least 1.
inline RunTasks on_threads(uint32_t threads) {
  CHECK(threads >= 1);
  return [threads](size_t count, const std::function<void(size_t)>& task) {
    std::atomic<size_t> next{0};
    CHECK(task != nullptr);
    const auto work = [&] {
      // Relaxed: each number is taken once; the joins order the tasks before the return.
      for (size_t number = next.fetch_add(1, std::memory_order_relaxed); number < count;
           number = next.fetch_add(1, std::memory_order_relaxed)) {
        task(number);
      }
    };
    std::vector<std::jthread> others;
    for (size_t i = 1; i < std::min<size_t>(threads, count); ++i) others.emplace_back(work);
    work();
  };
}

/// Runs `task` for all numbers below `count`. Returns the error of the smallest number that fails,
/// whatever the order in time. A task is skipped only if a task with a smaller number has failed.
inline Result<void> try_tasks(const RunTasks& run, size_t count,
                              const std::function<Result<void>(size_t)>& task) {
  CHECK(run != nullptr && task != nullptr);
  std::vector<Result<void>> results(count);
  std::atomic<size_t> first_failed{count};
  run(count, [&](size_t number) {
    // Relaxed: the number only saves work. The end of `run` orders the results before their use.
    size_t failed = first_failed.load(std::memory_order_relaxed);
    if (number > failed) return;
    results[number] = task(number);
    if (results[number]) return;
    while (number < failed &&
           !first_failed.compare_exchange_weak(failed, number, std::memory_order_relaxed)) {
    }
  });
  for (size_t number = 0; number < count; ++number) {
    if (results[number]) continue;
    CHECK(number == first_failed.load(std::memory_order_relaxed));
    return std::move(results[number]);
  }
  return {};
}

}  // namespace atolldb
