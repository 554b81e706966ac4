// The loop of one client of a benchmark: it keeps requests in flight until the run is over, and
// counts their answers. With think times it has terminals instead, one for each request that may be
// in flight. A terminal thinks after each answer before it sends its next request.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/common/clock.h"
#include "bench/driver/client_options.h"
#include "bench/driver/transport.h"
#include "bench/job/pauses.h"
#include "bench/job/run_times.h"
#include "shared/base/error.h"

namespace atolldb::bench {

/// Longest wait for an answer before a client looks at the clock.
inline constexpr std::chrono::milliseconds kClientWait{10};

/// One client with one connection. `Work` is the part of the benchmark:
///   Planned     one planned request, with a member `type`
///   Counts      its results, a WorkerResult with a default constructor
///   kBenchmark  prefix of errors
///   plan()      returns the next request
///   thinks()    returns whether there are think times
///   think_ns(previous, next)  returns the time between the answer of a request and the next one of
///               the same terminal
///   request(planned, input)  returns the procedure, and sets its input, valid until the next call
///   sent(planned)            the request is on its way
///   take(planned, status, output, is_measured, counts)  returns whether the answer is a commit; or
///               nothing if the status is a failure
///   describe(planned)        names the request in errors
/// Thread: one.
template <typename Work>
class ClientLoop {
 public:
  using Planned = typename Work::Planned;

  /// `index`: number of the client among those of its node. `must_stop`: of all clients of the run.
  ClientLoop(Transport& transport, Work& work, const RunTimes& times, const ClientOptions& options,
             uint32_t node, uint32_t index, std::atomic<bool>& must_stop)
      : transport_(transport),
        work_(work),
        times_(times),
        thinks_(work.thinks()),
        is_durable_(options.acknowledge == "durable"),
        most_in_flight_(std::min(options.pipeline, transport.capacity())),
        must_stop_(must_stop),
        result_(std::make_unique<typename Work::Counts>()) {
    result_->node = node;
    result_->worker = index;
  }

  /// Returns the results as JSON.
  Result<std::string> go() {
    wait_until_ns(times_.start_ns);
    const uint64_t started = monotonic_ns();
    measured_from_ = started + times_.warmup_ms * 1'000'000;
    end_ = measured_from_ + times_.run_ms * 1'000'000;
    pauses_.start(measured_from_, kShortestPauseNs);
    if (thinks_) start_terminals(started);
    while (!must_stop_.load(std::memory_order_relaxed) && monotonic_ns() < end_) {
      submit_all();
      wait();
      if (!error_.message.empty()) must_stop_.store(true, std::memory_order_relaxed);
    }
    const uint64_t ended = std::max(monotonic_ns(), measured_from_ + 1);
    // Answers after the end are not counted. Each request in flight ends, if need be by the end of
    // its session.
    while (in_flight_ != 0) transport_.dispatch(kClientWait);
    if (!error_.message.empty()) return std::unexpected(error_);
    result_->pauses = pauses_.finish(std::min(ended, end_));
    result_->seconds = static_cast<double>(std::min(ended, end_) - measured_from_) * 1e-9;
    return result_->to_json();
  }

 private:
  /// The next request of a terminal that thinks.
  struct Thinking {
    uint64_t due_ns = 0;
    Planned planned{};
  };
  struct IsLater {
    bool operator()(const Thinking& a, const Thinking& b) const { return a.due_ns > b.due_ns; }
  };

  /// Spreads the first requests of the terminals over one think time.
  void start_terminals(uint64_t now) {
    for (uint32_t terminal = 0; terminal < most_in_flight_; ++terminal) {
      const Planned planned = work_.plan();
      const uint64_t cycle = work_.think_ns(planned, planned);
      thinking_.push({now + cycle * terminal / most_in_flight_, planned});
    }
  }

  void submit_all() {
    if (!thinks_) {
      while (in_flight_ < most_in_flight_ && error_.message.empty()) submit(work_.plan());
      return;
    }
    while (!thinking_.empty() && thinking_.top().due_ns <= monotonic_ns() &&
           error_.message.empty()) {
      const Planned planned = thinking_.top().planned;
      thinking_.pop();
      submit(planned);
    }
  }

  /// Waits for an answer, or until the next terminal has thought.
  void wait() {
    std::chrono::nanoseconds most = kClientWait;
    if (!thinking_.empty()) {
      const uint64_t now = monotonic_ns();
      const uint64_t due = std::max(thinking_.top().due_ns, now);
      most = std::min(most, std::chrono::nanoseconds(due - now));
    }
    if (in_flight_ != 0) return transport_.dispatch(most);
    if (thinks_) std::this_thread::sleep_for(most);
  }

  void submit(const Planned& planned) {
    std::span<const std::byte> input;
    const char* const procedure = work_.request(planned, input);
    const uint64_t begin = monotonic_ns();
    const Status sent =
        transport_.submit(procedure, input, is_durable_,
                          [this, planned, begin](Status status, std::span<const std::byte> output) {
                            --in_flight_;
                            take(planned, begin, status, output);
                          });
    if (sent != Status::ok) return fail(planned, sent);
    ++in_flight_;
    work_.sent(planned);
  }

  void take(const Planned& planned, uint64_t begin, Status status,
            std::span<const std::byte> output) {
    const uint64_t now = monotonic_ns();
    if (thinks_) {
      const Planned next = work_.plan();
      thinking_.push({now + work_.think_ns(planned, next), next});
    }
    const bool is_measured = now >= measured_from_ && now < end_;
    const std::optional<bool> commits = work_.take(planned, status, output, is_measured, *result_);
    if (!commits) return fail(planned, status);
    if (!*commits || !is_measured) return;
    const auto type = static_cast<size_t>(planned.type);
    ++result_->commits[type];
    pauses_.commit(now);
    result_->latency[type].add(now - begin);
  }

  void fail(const Planned& planned, Status status) {
    if (!error_.message.empty()) return;
    const bool is_gone = status == Status::outcome_unknown || status == Status::unavailable ||
                         status == Status::recovering;
    error_ = {is_gone ? ExitCode::not_running : ExitCode::failed,
              fmt::format("{}: client {} of node {}: {}: {}{}", Work::kBenchmark, result_->worker,
                          result_->node, work_.describe(planned), to_string(status),
                          is_gone ? ": the node has ended the session" : "")};
  }

  Transport& transport_;
  Work& work_;
  const RunTimes times_;
  const bool thinks_;
  const bool is_durable_;
  const uint32_t most_in_flight_;
  std::atomic<bool>& must_stop_;
  std::unique_ptr<typename Work::Counts> result_;
  PauseRecorder pauses_;
  uint64_t measured_from_ = 0;  // monotonic_ns, as is end_
  uint64_t end_ = 0;
  uint32_t in_flight_ = 0;
  std::priority_queue<Thinking, std::vector<Thinking>, IsLater>
      thinking_;  // without those in flight
  Error error_;
};

/// Returns the function that runs a client of `Work` (ClientPort::RunClient). `Work` is made of the
/// input, the node, the number of nodes, the number of the client among those of its node, and the
/// options.
/// REQUIRES: `options` outlives the function.
template <typename Work, typename Input>
auto client_with(Input input, uint32_t nodes, const ClientOptions& options) {
  return [input = std::move(input), nodes, &options](Transport& transport, uint32_t node,
                                                     uint32_t index, std::atomic<bool>& must_stop) {
    Work work(input, node, nodes, index, options);
    return ClientLoop(transport, work, input.times, options, node, index, must_stop).go();
  };
}

}  // namespace atolldb::bench
