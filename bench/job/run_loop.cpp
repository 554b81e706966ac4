#include "bench/job/run_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace atolldb::bench {

uint64_t RunLoop::pause(WorkerResult& result, uint64_t until) {
  const uint64_t now = clock_.ticks();
  const uint64_t left_ns = until > now ? clock_.to_ns(until - now) : 0;
  std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left_ns, kPauseNs)));
  const uint64_t after = clock_.ticks();
  counter_.poll(result, after);
  return after;
}

void RunLoop::await_start() {
  while (monotonic_ns() + kCheckNs < times_.start_ns) {
    if (context_.should_stop()) return;  // run_until checks it again
    std::this_thread::sleep_for(std::chrono::nanoseconds(kCheckNs));
  }
  wait_until_ns(times_.start_ns);
}

void RunLoop::fail(std::string_view what, Status status) {
  if (status == Status::volatile_pool_exhausted) {
    ended_early_ = fmt::format("the volatile pool of node {} is full", context_.node());
    tell_others();
    return;
  }
  const bool is_gone = status == Status::cluster_failed;
  error_ = {
      is_gone ? ExitCode::not_running : ExitCode::failed,
      fmt::format("{}: {} on node {}: {}: {}", benchmark_, what, context_.node(), to_string(status),
                  is_gone ? "the cluster has stopped"
                          : "load the database again, and report the error if it persists")};
  tell_others();
}

void RunLoop::fail(std::string message) {
  error_ = {ExitCode::failed, std::move(message)};
  tell_others();
}

void RunLoop::tell_others() {
  const StopRow row{times_.run_number};
  // If this write fails, the other workers run until their time is over.
  static_cast<void>(
      run(context_.transaction(), context_.backoff(), kMaxEpoch,
          [&](Transaction& txn) { return control_.update(txn, 0, 0, sizeof(row), &row); }));
}

bool RunLoop::must_stop() {
  if (context_.should_stop()) {
    ended_early_ = "the job was cancelled or the cluster stops";
    return true;
  }
  StopRow row{};
  const Status status =
      run(context_.transaction(), context_.backoff(), kMaxEpoch,
          [&](Transaction& txn) { return control_.get(txn, 0, 0, sizeof(row), &row); });
  if (status != Status::ok || row.stopped_run != times_.run_number) return false;
  ended_early_ = "another worker had to stop";
  return true;
}

}  // namespace atolldb::bench
