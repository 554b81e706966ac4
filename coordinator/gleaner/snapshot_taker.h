// When snapshots are taken while the cluster runs: at intervals, after so much log, when volatile
// pages are short, when a logger has no room for its next file, and on request (design: stratified
// snapshots). A thread of the coordinator; what a snapshot takes is not its business.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/logging/logger.h"

namespace atolldb {

struct SnapshotTakerHooks {
  /// Takes one, on the taker's thread; answers its id, or that of the newest one if nothing has
  /// been committed since.
  std::function<Result<uint32_t>()> take;
  /// Whether anything has been committed since the last one.
  std::function<bool()> has_news;
  /// Bytes of log that the busiest node has written since the cluster began.
  std::function<uint64_t()> log_bytes;
  /// Whether a logger has no room for its next file. None: never.
  std::function<bool()> lacks_log_files = {};
  /// Whether volatile pages are short on some node. None: they never are.
  std::function<bool()> lacks_pages = {};
  /// Whether the latest snapshot has let a good part of some node's pages go. None: never.
  std::function<bool()> has_freed = {};
  /// Whether a transaction waits for the first snapshot (R62). None: never.
  std::function<bool()> is_first_awaited = {};
};

class SnapshotTaker {
 public:
  /// Answers a request; called once, on the taker's thread or by stop.
  using Reply = std::function<void(Result<uint32_t>)>;

  SnapshotTaker(const Config::Gleaner& config, SnapshotTakerHooks hooks, Logger logger)
      : config_(config), hooks_(std::move(hooks)), logger_(std::move(logger)) {}
  SnapshotTaker(const SnapshotTaker&) = delete;
  SnapshotTaker& operator=(const SnapshotTaker&) = delete;
  ~SnapshotTaker() { stop(); }

  void start();
  /// Requests that wait are answered with an error. The one under way is waited for: give it up
  /// before.
  void stop();

  /// Something else that needs the savepoint, on the taker's thread between two runs; `runs` is
  /// false when the taker ends before.
  using Task = std::function<void(bool runs)>;
  void between_runs(Task task);

  /// A snapshot of all that is durable now. Requests that come during a run wait for the next one.
  void request(Reply reply);

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  /// Why one is to be taken now; empty: not yet.
  std::string reason() const;
  void wait_after(const std::string& why);

  const Config::Gleaner& config_;
  SnapshotTakerHooks hooks_;
  Logger logger_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Reply> requests_;  // guarded by mutex_
  std::vector<Task> tasks_;      // guarded by mutex_
  bool ends_ = false;            // guarded by mutex_
  // The thread's own.
  Clock::time_point last_at_;
  uint64_t last_log_bytes_ = 0;
  Clock::duration page_pause_{0};  // before the next one for want of pages
  Clock::duration file_pause_{0};  // before the next one for a logger without its next file
  std::thread thread_;
};

}  // namespace atolldb
