// The jobs of one node: the results of their workers, and the requests that wait for their end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/base/status.h"
#include "shared/message/control_message.h"
#include "shared/message/pending_replies.h"

namespace atolldb {

/// Shared by the workers of the job and the table.
struct Job {
  uint64_t id = 0;
  std::string name;
  std::string input;
  std::atomic<bool> stop{false};
};

/// Thread: any. The table answers outside of its lock. A job is done when all its workers
/// have ended and everything that they committed or read is durable (R59).
class JobTable {
 public:
  using Clock = PendingReplies<>::Clock;
  /// Calls `deliver` with true when `epoch` is durable, or with false if it never will be. The
  /// call may come from any thread, or before the function returns (DurableAnswers::add).
  using Hold = std::function<void(uint64_t epoch, std::function<void(bool is_durable)> deliver)>;
  /// Limit of running and finished jobs. A new job replaces the oldest finished one.
  static constexpr size_t kMaxJobs = 256;

  /// REQUIRES: no call of `deliver` comes after the table is destroyed.
  explicit JobTable(Hold hold) : hold_(std::move(hold)) {}

  /// Adds a job of these workers. REQUIRES: there is a worker, and finish_worker is called once for
  /// each of them.
  Result<std::shared_ptr<Job>> add(std::string name, std::string input,
                                   const std::vector<uint32_t>& workers);
  /// Records the result of a worker. `commit_epoch`: upper bound for the epochs of all commits that
  /// the worker made or saw.
  void finish_worker(uint64_t id, uint32_t worker, Result<std::string> output,
                     uint64_t commit_epoch);
  /// Answers {"done": bool, "outputs": [...]} when the job is done, or at the deadline. If the
  /// cluster has failed by then, "status" is outcome_unknown, and every output is an error (R41).
  /// After `end_waits` this answers at once.
  void wait(uint64_t id, Clock::time_point deadline, ControlReply reply);
  Result<void> stop(uint64_t id);
  /// Asks all jobs to stop. From now on `add` refuses (not_running), so no job is missed.
  void stop_all();

  /// Answers the requests whose deadline has passed. Returns the next deadline, or nothing if no
  /// request waits.
  std::optional<Clock::time_point> expire(Clock::time_point now);
  /// Answers all requests that wait. From now on `wait` answers at once, because nothing calls
  /// `expire` any more.
  void end_waits();

 private:
  struct Record {
    std::shared_ptr<Job> job;
    size_t running = 0;
    bool is_done = false;       // no worker runs, and the answer may be sent
    uint64_t commit_epoch = 0;  // the largest epoch that its workers have reported
    Json outputs = Json::array();
    Status status = Status::ok;
    PendingReplies<> waiting;  // requests that wait for the end of the job or for their deadline
  };

  /// Completes a job whose commits are durable, or never will be. Answers the requests that wait
  /// for it.
  void complete(uint64_t id, bool is_durable);
  static Json answer_of(const Record& record);

  const Hold hold_;
  std::mutex mutex_;
  std::map<uint64_t, Record> jobs_;  // by id: oldest first; guarded by mutex_
  uint64_t next_id_ = 1;             // guarded by mutex_
  bool is_closed_ = false;           // guarded by mutex_
  bool may_wait_ = true;             // guarded by mutex_
};

}  // namespace atolldb
