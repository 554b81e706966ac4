// Counts the commits of one worker: with a log when they are durable, as a client would see it,
// without one at once (design: durability; R19).
#pragma once

#include <cstdint>
#include <memory>

#include "bench/common/clock.h"
#include "bench/job/worker_result.h"
#include "engine/transaction/worker_context.h"

namespace atolldb::bench {

class CommitCounter {
 public:
  CommitCounter(WorkerContext& worker, const TickClock& clock);

  /// A transaction of `type` ran from `begin` to `end` (ticks) and has committed; `epoch` is the
  /// one that its answer depends on. Counts in `result` what has become durable since the last
  /// call. Waits when kCapacity commits are not durable yet.
  void count(WorkerResult& result, uint32_t type, uint64_t begin, uint64_t end, uint64_t epoch) {
    result.latency[type].add(clock_.to_ns(end - begin));
    if (!is_logged_) {
      ++result.commits[type];
      return;
    }
    push(result, {begin, end, epoch, type});
    release(result, end);
  }
  /// What becomes durable later than this (ticks) does not count any more.
  void set_end(uint64_t end) { end_ = end; }
  /// Waits until all of them are durable, without counting them: their time is over. Holds no page
  /// meanwhile. Ends early when the cluster has failed.
  void await_all();

  /// Commits that may wait at a time: several epochs of the fastest workload.
  static constexpr uint32_t kCapacity = 1u << 16;

 private:
  struct Commit {
    uint64_t begin;
    uint64_t end;
    uint64_t epoch;
    uint64_t type;
  };
  /// When the worker saw that an epoch had ended.
  struct EpochEnd {
    uint64_t epoch;
    uint64_t at;
  };
  static constexpr uint32_t kEpochs = 1024;  // whose ends are remembered

  void push(WorkerResult& result, const Commit& commit);
  void release(WorkerResult& result, uint64_t now);
  void credit(WorkerResult& result, const Commit& commit, uint64_t now);
  void note_epochs(uint64_t now);
  void await(uint64_t epoch);

  WorkerContext& worker_;
  const EpochBlock& epochs_;
  const TickClock& clock_;
  bool is_logged_;
  uint64_t durable_ = 0;  // as seen last
  uint64_t current_ = 0;  // as seen last
  uint64_t end_ = ~uint64_t{0};
  EpochEnd ends_[kEpochs] = {};
  // A ring, in the order of commits; so epochs ascend, but for read-only ones.
  std::unique_ptr<Commit[]> waiting_;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

}  // namespace atolldb::bench
