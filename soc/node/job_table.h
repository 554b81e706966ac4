// Jobs of one node: what each worker answered, and who waits for the end.
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

#include "shared/message/control_message.h"
#include "shared/status.h"

namespace atolldb {

/// Shared by the job's workers and the table.
struct Job {
  uint64_t id = 0;
  std::string name;
  std::string input;
  std::atomic<bool> stop{false};
};

/// Thread safe. Answers waiters outside its lock. A job is done when all of its workers have ended
/// and everything that they committed or read is durable (R59).
class JobTable {
 public:
  using Clock = std::chrono::steady_clock;
  /// Calls `deliver` when `epoch` is durable, or with false when it never will be; from any thread,
  /// or at once (DurableAnswers::add).
  using Hold = std::function<void(uint64_t epoch, std::function<void(bool is_durable)> deliver)>;
  /// Running and finished jobs; the oldest finished one is forgotten for a new one.
  static constexpr size_t kMaxJobs = 256;

  /// REQUIRES: what `hold` delivers comes before the table's end.
  explicit JobTable(Hold hold) : hold_(std::move(hold)) {}

  Result<std::shared_ptr<Job>> add(std::string name, std::string input,
                                   const std::vector<uint32_t>& workers);
  /// The worker has ended. `commit_epoch`: of no commit that it made or saw is the epoch later.
  void finish_worker(uint64_t id, uint32_t worker, Result<std::string> output,
                     uint64_t commit_epoch);
  /// Answers {"done": bool, "outputs": [...]} when the job is done, or at the deadline. If the
  /// cluster fails before, "status" is outcome_unknown and so is every output (R41).
  void wait(uint64_t id, Clock::time_point deadline, ControlReply reply);
  Result<void> stop(uint64_t id);
  /// All jobs shall stop; `add` refuses from now on (not_running), so that none is missed.
  void stop_all();

  /// Answers waiters whose time is over; the next deadline.
  std::optional<Clock::time_point> expire(Clock::time_point now);

 private:
  struct Waiter {
    Clock::time_point deadline;
    ControlReply reply;
  };
  struct Record {
    std::shared_ptr<Job> job;
    size_t running = 0;
    bool is_done = false;       // no worker runs, and the answer may be told
    uint64_t commit_epoch = 0;  // the largest that its workers have told
    Json outputs = Json::array();
    Status status = Status::ok;
    std::vector<Waiter> waiters;
  };

  /// What it committed is durable, or will never be: answers those who wait.
  void complete(uint64_t id, bool is_durable);
  static Json answer_of(const Record& record);

  const Hold hold_;
  std::mutex mutex_;
  std::map<uint64_t, Record> jobs_;  // by id: oldest first; guarded by mutex_
  uint64_t next_id_ = 1;             // guarded by mutex_
  bool is_closed_ = false;           // guarded by mutex_
};

}  // namespace atolldb
