#include "coordinator/task_thread.h"

#include "shared/base/check.h"
#include "shared/process/start_up.h"

namespace atolldb {

void TaskThread::start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { run(); });
}

void TaskThread::stop() {
  CHECK(!is_current());  // the thread would wait for itself
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool TaskThread::give(std::function<void()> task) {
  CHECK(task);
  {
    const std::lock_guard guard(mutex_);
    // While `ends_` is false, the thread has not ended, so it will run the task. It ends only after
    // it has seen `ends_` and no task, under this lock.
    if (ends_) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void TaskThread::run() {
  name_thread(name_);
  id_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !tasks_.empty() || ends_; });
    if (tasks_.empty()) break;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
  // Clears the id of this thread, because the system may give it to a later thread.
  id_.store(std::thread::id(), std::memory_order_relaxed);
}

}  // namespace atolldb
