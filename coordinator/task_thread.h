// A thread that runs tasks one after the other, in the order in which they were given.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace atolldb {

class TaskThread {
 public:
  /// `name`: name of the thread, as for name_thread.
  explicit TaskThread(std::string name) : name_(std::move(name)) {}
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  ~TaskThread() { stop(); }

  void start();
  /// Runs the tasks that were given before, then ends the thread. Refuses later tasks.
  void stop();
  /// Adds a task. Tasks that are added before `start` run after it. Returns false after `stop`. The
  /// task then never runs, so the caller must answer the client that waits for it. Thread: any.
  [[nodiscard]] bool give(std::function<void()> task);
  /// Returns whether the caller is a task of this thread. Thread: any.
  bool is_current() const {
    // Relaxed: a thread sees the id that it has stored itself, and no other thread stores the same
    // id.
    return id_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

 private:
  void run();

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool ends_ = false;                        // guarded by mutex_
  std::atomic<std::thread::id> id_;          // stored by the thread itself
  std::thread thread_;
};

}  // namespace atolldb
