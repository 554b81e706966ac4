// A base of tests of takers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>

#include "shared/base/error.h"

namespace atolldb::test {

/// Takes no real snapshots or checkpoints. Each one waits until the test lets it through.
class GatedTakes {
 protected:
  Result<uint32_t> take() {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return allowed_ >= begun_; });
    if (fails_) return make_error(ExitCode::disk_full, "no space left");
    return begun_;
  }
  void let_through(uint32_t count) {
    {
      const std::lock_guard lock(mutex_);
      allowed_ += count;
    }
    changed_.notify_all();
  }
  void await_begun(uint32_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ >= count; });
  }
  uint32_t begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  template <typename Taker>
  static std::future<Result<uint32_t>> request(Taker& taker) {
    auto promise = std::make_shared<std::promise<Result<uint32_t>>>();
    taker.request([promise](const Result<uint32_t>& taken) { promise->set_value(taken); });
    return promise->get_future();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t begun_ = 0;  // guarded by mutex_, like the next members
  uint32_t allowed_ = 0;
  bool fails_ = false;
};

}  // namespace atolldb::test
