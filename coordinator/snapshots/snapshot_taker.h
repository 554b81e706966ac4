// The snapshot taker: the thread that decides when the running cluster takes a snapshot. It does
// not know how a snapshot is made. A snapshot is due for one of these reasons:
// * The interval is over.
// * A volume of log was written.
// * A pool of volatile pages is low, or its free pages last no longer than a snapshot takes.
// * A logger has no room for its next file.
// * A transaction waits for the first snapshot.
// * A client requests a snapshot.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "coordinator/durability/taker_queue.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/logging/logger.h"

namespace atolldb {

/// Functions that the taker calls. A hook with a default value may be empty. An empty hook that
/// returns a bool counts as returning false.
struct SnapshotTakerHooks {
  /// Takes a snapshot on the taker's thread. Returns its id, or the id of the newest snapshot if
  /// nothing has been committed since.
  std::function<Result<uint32_t>()> take;
  /// Does the same as `take`, but takes a snapshot even if nothing has been committed since the
  /// newest one (R71). Empty: an idle cluster takes no snapshots.
  std::function<Result<uint32_t>()> take_again = {};
  /// Returns whether the latest call has begun the job of the next snapshot (R84). Then the taker
  /// calls `take_next` at once, which returns what `take` returns.
  std::function<bool()> has_begun_next = {};
  std::function<Result<uint32_t>()> take_next = {};
  /// Returns whether anything has been committed since the last snapshot.
  std::function<bool()> has_new_commits;
  /// Returns the bytes of log that the busiest node has written since the cluster began.
  std::function<uint64_t()> log_bytes;
  /// Returns whether a logger has no room for its next file.
  std::function<bool()> lacks_log_files = {};
  /// Returns whether the pool of some node is low.
  std::function<bool()> pool_is_low = {};
  /// Returns whether the free pages would be used up while a snapshot is taken. Optional.
  std::function<bool()> pages_run_short = {};
  /// Returns whether transactions wait for pages now, because a pool is almost empty.
  std::function<bool()> pool_is_starved = {};
  /// Returns whether the latest snapshot has freed a good part of some node's pool.
  std::function<bool()> has_freed_pages = {};
  /// Returns whether a transaction waits for the first snapshot (R62).
  std::function<bool()> is_first_awaited = {};
  /// Called once, when the taker's thread begins.
  std::function<void()> on_start = {};
};

class SnapshotTaker {
 public:
  SnapshotTaker(const Config::Gleaner& config, SnapshotTakerHooks hooks, Logger logger)
      : config_(config), hooks_(std::move(hooks)), logger_(std::move(logger)) {}
  SnapshotTaker(const SnapshotTaker&) = delete;
  SnapshotTaker& operator=(const SnapshotTaker&) = delete;
  ~SnapshotTaker() { stop(); }

  void start();
  /// Waits for the current snapshot, which the caller should cancel before. Then answers the
  /// waiting requests with an error.
  void stop();

  void between_runs(TakerQueue::Task task) { queue_.between_runs(std::move(task)); }

  /// Requests a snapshot of all commits that are durable now. Requests that arrive during a
  /// snapshot wait for the next one.
  void request(TakerQueue::Reply reply) { queue_.request(std::move(reply)); }

  /// Returns whether a request or a task waits for the end of the current snapshot, or the current
  /// snapshot was requested, or the taker ends. Thread: any.
  bool is_awaited() const { return queue_.is_awaited(); }

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  /// Returns the reason why a snapshot is due now, or "" if none is due.
  std::string reason() const;
  /// Returns the reason why another snapshot of an idle cluster is due, or "" if none is due.
  std::string idle_reason() const;
  bool pool_is_starved() const;
  bool has_begun_next() const { return hooks_.has_begun_next && hooks_.has_begun_next(); }
  /// Takes a snapshot for the reason `why`, and sets the pauses after it.
  Result<uint32_t> take(const std::string& why, const std::function<Result<uint32_t>()>& how);
  /// Returns whether the pool is low and the pause after the last snapshot for it is over.
  bool needs_pages() const;
  /// Sets the pauses before the next snapshot, after one for this reason.
  void set_pauses(const std::string& why);

  const Config::Gleaner& config_;
  SnapshotTakerHooks hooks_;
  Logger logger_;

  TakerQueue queue_{"snapshot"};
  // The next members are used only by the taker's thread.
  Clock::time_point last_at_;  // end of the last snapshot
  Clock::time_point last_begun_;
  uint64_t last_log_bytes_ = 0;
  Clock::duration page_pause_{0};  // before the next snapshot for a low pool
  uint32_t idle_failures_ = 0;     // snapshots since the last commit that freed too few pages
  Clock::duration file_pause_{0};  // before the next snapshot for a logger without its next file
  std::thread thread_;
};

}  // namespace atolldb
