// Counts the commits of one worker. With a log, a commit counts when it is durable, because a
// client gets its answer then (R19). Without a log, it counts at once.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/common/clock.h"
#include "bench/job/pauses.h"
#include "bench/job/worker_result.h"
#include "engine/transaction/worker_context.h"

namespace atolldb::bench {

class CommitCounter {
 public:
  CommitCounter(WorkerContext& worker, const TickClock& clock);

  /// Records a committed transaction of `type` that ran from `begin` to `end` (ticks). `epoch`: the
  /// epoch that its answer depends on. Adds commits that have become durable to `result`. Waits
  /// while kCapacity commits are not durable.
  void count(WorkerResult& result, uint32_t type, uint64_t begin, uint64_t end, uint64_t epoch) {
    result.latency[type].add(clock_.to_ns(end - begin));
    if (!is_logged_) {
      ++result.commits[type];
      pauses_.commit(end);
      return;
    }
    push(result, {begin, end, epoch, type});
    release(result, end);
  }
  /// Adds commits that have become durable to `result`, for a worker that pauses.
  void poll(WorkerResult& result, uint64_t now) {
    if (is_logged_ && count_ != 0) release(result, now);
  }
  /// Commits that become durable after this time (ticks) do not count.
  void set_end(uint64_t end) { end_ = end; }
  /// Begins to record pauses: times in which no commit counts.
  void start_pauses(uint64_t now) { pauses_.start(now, clock_.from_ns(kShortestPauseNs)); }
  /// Ends the recording. Returns the pauses (ticks).
  Pauses finish_pauses(uint64_t end) { return pauses_.finish(end); }
  /// Waits until all commits are durable, and does not count them, because the run is over. The
  /// worker holds no page reference meanwhile. Returns early if the cluster has failed.
  void await_all();

  /// Number of commits that may wait at the same time. The fastest workload needs several epochs to
  /// fill the ring.
  static constexpr uint32_t kCapacity = 1u << 16;

 private:
  struct Commit {
    uint64_t begin;
    uint64_t end;
    uint64_t epoch;
    uint64_t type;
  };
  /// The time at which the worker noticed the end of an epoch.
  struct EpochEnd {
    uint64_t epoch;
    uint64_t at;
  };
  static constexpr uint32_t kEpochs = 1024;  // number of epochs whose ends are remembered

  void push(WorkerResult& result, const Commit& commit);
  void release(WorkerResult& result, uint64_t now);
  void credit(WorkerResult& result, const Commit& commit, uint64_t now);
  void note_epochs(uint64_t now);
  void await(uint64_t epoch);

  WorkerContext& worker_;
  const EpochBlock& epochs_;
  const TickClock& clock_;
  bool is_logged_;
  uint64_t durable_ = 0;  // last value seen of `durable`
  uint64_t current_ = 0;  // last value seen of `current`
  uint64_t end_ = ~uint64_t{0};
  PauseRecorder pauses_;
  EpochEnd ends_[kEpochs] = {};
  // A ring in commit order. Epochs ascend, except those of read-only transactions.
  std::unique_ptr<Commit[]> waiting_;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

}  // namespace atolldb::bench
