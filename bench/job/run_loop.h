// The time of a run on one worker: common start, warm-up, measured part. If one worker has to stop
// early, all workers stop. The benchmark supplies the transactions.
#pragma once

#include <string>
#include <string_view>

#include "bench/common/clock.h"
#include "bench/job/commit_counter.h"
#include "bench/job/run_times.h"
#include "bench/job/worker_result.h"
#include "engine/array/array.h"
#include "engine/transaction/run.h"
#include "soc/procedure/procedure.h"

namespace atolldb::bench {

/// Record 0 of a benchmark's control storage. A worker that must stop early writes it to tell all
/// workers.
struct StopRow {
  uint64_t stopped_run;  // number of the run that a worker ended early; runs count from 1
};

class RunLoop {
 public:
  /// `benchmark`: prefix of errors. `control`: an array whose record 0 is a StopRow.
  RunLoop(JobContext& context, std::string_view benchmark, const Array& control,
          const RunTimes& times)
      : context_(context),
        benchmark_(benchmark),
        control_(control),
        times_(times),
        counter_(context.worker(), clock_) {}

  const TickClock& clock() const { return clock_; }

  /// Records a committed transaction of `type` that ran from `begin` to `end` (ticks). `result`:
  /// the argument of `go`.
  void count(WorkerResult& result, uint32_t type, uint64_t begin, uint64_t end) {
    counter_.count(result, type, begin, end, context_.transaction().commit_epoch());
  }

  /// For a worker that has nothing to do until `until` (ticks): pauses for a short time, and counts
  /// commits that became durable. Returns the time after the pause. `result`: the argument of `go`.
  uint64_t pause(WorkerResult& result, uint64_t until);

  /// Calls `transact(now)` until the time is over. `transact` runs one transaction that begins at
  /// `now`. It returns the time at which the transaction ended, or 0 after `fail`. Calls
  /// `between()` about fifty times a second. Resets `result` after the warm-up. `result`: a
  /// WorkerResult with a default constructor.
  template <typename Counts, typename Transact, typename Between>
  Result<void> go(Counts& result, Transact&& transact, Between&& between) {
    await_start();
    const uint64_t start_ns = monotonic_ns();
    const uint64_t start = clock_.ticks();
    const uint64_t warm = start + clock_.from_ns(times_.warmup_ms * 1'000'000);
    const uint64_t end = warm + clock_.from_ns(times_.run_ms * 1'000'000);
    counter_.set_end(end);
    uint64_t now = run_until(start, warm, transact, between);
    const EngineCounts before = EngineCounts::read(context_.worker().metrics());
    result = Counts();
    const uint64_t measured_from = now;
    counter_.start_pauses(now);
    // A worker that waits for pages still notices which of its commits become durable.
    const WaitHook hook(context_.worker(), [&] { counter_.poll(result, clock_.ticks()); });
    if (!is_stopped()) now = run_until(now, end, transact, between);
    counter_.poll(result, now);
    result.node = context_.node();
    result.worker = context_.worker_ordinal();
    result.seconds = static_cast<double>(clock_.to_ns(now - measured_from)) * 1e-9;
    result.engine = EngineCounts::read(context_.worker().metrics()).since(before);
    result.ended_early = ended_early_;
    result.pauses = counter_.finish_pauses(is_stopped() ? now : end);
    for (Pause& pause : result.pauses) {
      pause.begin = start_ns + clock_.to_ns(pause.begin - start);
      pause.end = start_ns + clock_.to_ns(pause.end - start);
    }
    counter_.await_all();
    if (!error_.message.empty()) return std::unexpected(error_);
    return {};
  }

  /// Reports a transaction that cannot succeed, and ends the run on all workers. A full pool is an
  /// early end; every other status is an error that names `what`.
  void fail(std::string_view what, Status status);
  /// Reports a failure that has no status, and ends the run on all workers.
  void fail(std::string message);

 private:
  static constexpr uint64_t kCheckNs = 20'000'000;
  /// Longest pause. The durable latencies of a worker that pauses are off by at most this time.
  static constexpr uint64_t kPauseNs = 200'000;

  template <typename Transact, typename Between>
  uint64_t run_until(uint64_t now, uint64_t end, Transact&& transact, Between&& between) {
    const uint64_t check_every = clock_.from_ns(kCheckNs);
    uint64_t next_check = now;
    while (now < end) {
      if (now >= next_check) [[unlikely]] {
        if (must_stop()) break;
        between();
        now = clock_.ticks();
        next_check = now + check_every;
      }
      const uint64_t ended = transact(now);
      if (ended == 0) [[unlikely]] {
        return clock_.ticks();
      }
      now = ended;
    }
    return now;
  }

  /// Waits for the common start, or until the job must stop.
  void await_start();
  bool is_stopped() const { return !ended_early_.empty() || !error_.message.empty(); }
  bool must_stop();
  void tell_others();

  JobContext& context_;
  std::string_view benchmark_;
  Array control_;
  RunTimes times_;
  TickClock clock_;
  CommitCounter counter_;
  std::string ended_early_;
  Error error_;
};

}  // namespace atolldb::bench
