// What waits for the thread that takes snapshots or checkpoints: requests of clients, and tasks
// that change the savepoint.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/base/error.h"

namespace atolldb {

class TakerQueue {
 public:
  /// Answers a request with the id of a snapshot or checkpoint. Called exactly once: by the taker's
  /// thread, by `reject`, or by `request` if that is called after `end`.
  using Reply = std::function<void(const Result<uint32_t>&)>;
  /// A task that changes the savepoint. It runs on the taker's thread while nothing is being taken,
  /// with `runs` true. If the taker ends before that, the task is called with `runs` false.
  using Task = std::function<void(bool runs)>;
  struct Batch {
    std::vector<Task> tasks;
    std::vector<Reply> replies;
  };

  /// `what`: what is requested, for errors.
  explicit TakerQueue(std::string what) : what_(std::move(what)) {}

  /// Thread: any.
  void request(Reply reply);
  /// Thread: any.
  void between_runs(Task task);
  /// Returns whether a request or a task waits, or the latest batch had a request, or `end` was
  /// called. Thread: any.
  bool is_awaited() const;
  bool has_ended() const;

  /// Waits up to `pause` for a request or a task. Returns all that wait, or nothing after `end`.
  /// Thread: the taker's.
  std::optional<Batch> wait(std::chrono::steady_clock::duration pause);
  /// The taker goes on with work that no request asked for. Thread: the taker's.
  void begin_unrequested();

  /// Ends the waits of the taker's thread. Thread: any.
  void end();
  /// Answers what waits with an error. REQUIRES: the taker's thread has ended, after `end`.
  void reject();

 private:
  Error stopped() const;

  const std::string what_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Batch waiting_;              // guarded by mutex_, like the next members
  bool is_requested_ = false;  // the latest batch had a request
  bool ends_ = false;
};

}  // namespace atolldb
