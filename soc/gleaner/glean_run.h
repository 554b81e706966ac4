// One node's part of one run of the gleaner, with its threads: prepared, then mapping, then ended.
// Mappers of any node may write to the inboxes of all: so none starts before all nodes are
// prepared. Nothing of it runs on a worker's thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shared/logging/logger.h"
#include "shared/message/control_message.h"
#include "shared/metrics/gleaner_metrics.h"
#include "soc/gleaner/glean_work.h"

namespace atolldb {

/// Any thread may call any function. Answers are given by any thread, without locks.
class GleanRun {
 public:
  using Clock = std::chrono::steady_clock;

  /// Begins at once. `prepared` is answered when the inboxes of this node take records, or with the
  /// reason why they never will. `places` outlive the run.
  /// `disk_reserve`: see GleanWork.
  GleanRun(GleanPlan plan, const GleanPlaces& places, uint64_t disk_reserve, ControlReply prepared,
           Logger logger);
  GleanRun(const GleanRun&) = delete;
  GleanRun& operator=(const GleanRun&) = delete;
  /// Gives up a run that has not ended; the file of one that has ended well stays.
  ~GleanRun();

  uint32_t number() const { return work_.snapshot(); }
  /// Starts the mappers. REQUIRES: all nodes are prepared.
  void map();
  /// Answers {"done": true} and what the node has made when it has ended, an error when
  /// it has ended otherwise, and {"done": false} at the deadline; with the progress.
  void wait(Clock::time_point deadline, ControlReply reply);
  /// Gives it up and removes its file, even if it has ended well; answers {} when that is done.
  void discard(const ControlReply& reply);
  /// The same without the answer, and a run that has ended well keeps its file. False: it had
  /// ended.
  bool give_up();
  bool has_ended() const;

  GleanProgress progress() const { return work_.progress(); }
  GleanPhase phase() const;

 private:
  struct Waiter {
    Clock::time_point deadline;
    ControlReply reply;
  };
  using Part = Result<void> (GleanWork::*)(uint32_t ordinal);

  void run(const ControlReply& prepared);
  void serve();
  void start(const char* name, uint32_t count, Part part);
  void fail(const Error& error);
  void end();
  bool is_idle() const;
  void answer_due(std::unique_lock<std::mutex>& lock);
  Result<Json> outcome() const;

  GleanWork work_;
  Logger logger_;
  std::vector<std::thread> parts_;  // the control thread's

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  bool map_wanted_ = false;
  bool is_mapping_ = false;
  bool is_discarded_ = false;
  bool has_ended_ = false;
  uint32_t parts_going_ = 0;
  std::optional<Error> failure_;  // the one that says most
  Json result_;                   // once ended well
  std::vector<Waiter> waiters_;
  std::vector<ControlReply> discarders_;

  std::thread control_;  // after all that it uses
};

/// Members of an answer.
Json to_json(const GleanProgress& progress);
/// What `atoll status` and a salvage's report list.
Json to_json(const UnreadablePage& page);

}  // namespace atolldb
