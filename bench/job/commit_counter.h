// Counts the commits of one worker. With a log, a commit counts when it is durable, because a
// client gets its answer then (R19). Without a log, it counts at once.
//
// Commits that wait for the log are kept in groups. A group has the commits of a few microseconds,
// with one time and one epoch. An entry for each commit would cost a cache miss and three histogram
// updates, which is a tenth of a short transaction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "bench/common/clock.h"
#include "bench/job/pauses.h"
#include "bench/job/worker_result.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/check.h"

namespace atolldb::bench {

class CommitCounter {
 public:
  CommitCounter(WorkerContext& worker, const TickClock& clock);

  /// Records a committed transaction of `type` that ran from `begin` to `end` (ticks). `epoch`: the
  /// epoch that its answer depends on. A call that begins a group, or ends it because the
  /// transaction was long, adds the groups that have become durable to `result`. It waits while
  /// kCapacity groups are not durable.
  /// REQUIRES: type < kMaxTypes; begin and end are not less than those of the last call.
  void count(WorkerResult& result, uint32_t type, uint64_t begin, uint64_t end, uint64_t epoch) {
    DCHECK(type < kMaxTypes && begin <= end);
    result.latency[type].add(clock_.to_ns(end - begin));
    if (!is_logged_) {
      ++result.commits[type];
      pauses_.commit(end);
      return;
    }
    if (end >= group_until_ || epoch > current_) begin_group(result, begin, end);
    Group& group = waiting_[(first_ + count_) % kCapacity];
    DCHECK(group.begin <= begin && group.end <= end);
    group.end = end;
    group.epoch = std::max(group.epoch, epoch);
    ++group.commits[type];
    // A long transaction must not wait for the next one, which would double its latency.
    if (end >= group_until_) poll(result, end);
  }
  /// Ends the group, and adds commits that have become durable to `result`. For a worker that
  /// pauses, and for the end of the run.
  void poll(WorkerResult& result, uint64_t now) {
    if (!is_logged_) return;
    end_group(result);
    release(result, now);
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

  /// Number of groups that may wait at the same time: those of at least half a second.
  static constexpr uint32_t kCapacity = 1u << 16;
  /// Time from the begin of a group's first transaction to the end of its last one. Latencies
  /// until the commit is durable are too long by less than this.
  static constexpr uint64_t kGroupNs = 8'000;
  /// Types of transactions in one benchmark. The counts fill the rest of a group's cache line.
  static constexpr uint32_t kMaxTypes = 10;

 private:
  /// Consecutive commits. A transaction that takes longer than kGroupNs has its own group.
  struct Group {
    uint64_t begin;               // of the first transaction
    uint64_t end;                 // of the last transaction
    uint64_t epoch;               // the latest of the group's commits. They depend on no later one.
    uint32_t commits[kMaxTypes];  // by type
  };
  static_assert(sizeof(Group) == 64);
  /// The time at which the worker noticed the end of an epoch.
  struct EpochEnd {
    uint64_t epoch;
    uint64_t at;
  };
  static constexpr uint32_t kEpochs = 1024;  // number of epochs whose ends are remembered

  void begin_group(WorkerResult& result, uint64_t begin, uint64_t end);
  void end_group(WorkerResult& result);
  void release(WorkerResult& result, uint64_t now);
  void credit(WorkerResult& result, const Group& group, uint64_t now);
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
  // A ring in commit order. Epochs ascend, except those of groups of read-only transactions. The
  // open group, if any, follows the `count_` ended ones.
  std::unique_ptr<Group[]> waiting_;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  uint64_t group_until_ = 0;  // ticks: a commit before this joins the open group. 0: none is open
};

}  // namespace atolldb::bench
