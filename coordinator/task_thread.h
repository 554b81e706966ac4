// A thread that runs tasks one after the other, in the order in which they were given.
#pragma once

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
  /// `name`: as for name_thread.
  explicit TaskThread(std::string name) : name_(std::move(name)) {}
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  ~TaskThread() { stop(); }

  void start();
  /// Runs the tasks that were given before, then ends the thread.
  void stop();
  /// Adds a task. Tasks that are given before `start` wait for it. Thread: any.
  void give(std::function<void()> task);

 private:
  void run();

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool ends_ = false;                        // guarded by mutex_
  std::thread thread_;
};

}  // namespace atolldb
