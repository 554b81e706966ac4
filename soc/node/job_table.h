// Jobs of one node: what each worker answered, and who waits for the end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shared/message/control_message.h"

namespace atolldb {

/// Shared by the job's workers and the table.
struct Job {
  uint64_t id = 0;
  std::string name;
  std::string input;
  std::atomic<bool> stop{false};
};

/// Thread safe. Answers waiters outside its lock.
class JobTable {
 public:
  using Clock = std::chrono::steady_clock;
  /// Running and finished jobs; the oldest finished one is forgotten for a new one.
  static constexpr size_t kMaxJobs = 256;

  Result<std::shared_ptr<Job>> add(std::string name, std::string input,
                                   const std::vector<uint32_t>& workers);
  /// The job ends when all of its workers have.
  void finish_worker(uint64_t id, uint32_t worker, Result<std::string> output);
  /// Answers {"done": bool, "outputs": [...]} when the job ends, or at the deadline.
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
    Json outputs = Json::array();
    std::vector<Waiter> waiters;
  };

  std::mutex mutex_;
  std::map<uint64_t, Record> jobs_;  // by id: oldest first; guarded by mutex_
  uint64_t next_id_ = 1;             // guarded by mutex_
  bool is_closed_ = false;           // guarded by mutex_
};

}  // namespace atolldb
