// A task with a thread of its own. Control requests wait for its end, each with a deadline.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "shared/message/control_message.h"
#include "shared/message/pending_replies.h"

namespace atolldb {

/// Thread: any, for all functions. Replies are called by any thread, without locks.
class AwaitedTask {
 public:
  using Clock = PendingReplies<>::Clock;
  /// Does the work. Returns members of the answer.
  using Work = std::function<Result<Json>()>;
  /// Returns members of each answer, also before the end. Thread: any.
  using Progress = std::function<Json()>;

  /// Begins `work` at once, on a thread with this name.
  AwaitedTask(std::string name, Work work, Progress progress);
  AwaitedTask(const AwaitedTask&) = delete;
  AwaitedTask& operator=(const AwaitedTask&) = delete;
  /// Waits for the end of the work.
  ~AwaitedTask();

  /// Answers with "done": true, the progress and the members that the work has returned, when the
  /// work has ended; or with "done": false and the progress at the deadline. Answers with an error
  /// if the work has failed.
  void wait(Clock::time_point deadline, ControlReply reply);
  bool has_ended() const;
  /// Returns whether the work has ended without an error.
  bool has_succeeded() const;

 private:
  void run(const std::string& name, const Work& work);
  void answer_waits();
  /// REQUIRES: mutex_ is held.
  Result<Json> outcome() const;

  const Progress progress_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Result<Json>> result_;  // set at the end; guarded by mutex_
  PendingReplies<> waiting_;            // guarded by mutex_
  std::thread answers_;  // this and the next are declared after all members that they use
  std::thread worker_;
};

}  // namespace atolldb
