#include "bench/ycsb_driver/client_port.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>
#include <utility>

#include "bench/common/clock.h"
#include "bench/ycsb/generator.h"
#include "bench/ycsb/record.h"
#include "bench/ycsb/run_result.h"
#include "bench/ycsb/table.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/kv/kv_request.h"

namespace atolldb::ycsb {
namespace {

/// Longest wait for an answer before a client looks at the clock.
constexpr std::chrono::milliseconds kClientWait{10};

/// One client with one connection. Thread: one.
class Client {
 public:
  /// `index`: number of the client among those of its node. `must_stop`: of all clients.
  Client(bench::Transport& transport, const JobInput& input, uint32_t node, uint32_t nodes,
         uint32_t index, const ClientOptions& options, std::atomic<bool>& must_stop)
      : transport_(transport),
        input_(input),
        generator_(input, node, nodes, index, seed_of(input, node, index)),
        is_durable_(options.acknowledge == "durable"),
        most_in_flight_(std::min(options.pipeline, transport.capacity())),
        must_stop_(must_stop),
        record_(input.shape.record_bytes),
        result_(std::make_unique<RunResult>()) {
    result_->node = node;
    result_->worker = index;
  }

  Result<std::string> go() {
    const bench::RunTimes& times = input_.times;
    bench::wait_until_ns(times.start_ns);
    const uint64_t started = bench::monotonic_ns();
    measured_from_ = started + times.warmup_ms * 1'000'000;
    end_ = measured_from_ + times.run_ms * 1'000'000;
    pauses_.start(measured_from_, bench::kShortestPauseNs);
    while (!must_stop_.load(std::memory_order_relaxed) && bench::monotonic_ns() < end_) {
      while (in_flight_ < most_in_flight_ && error_.message.empty()) submit();
      transport_.dispatch(kClientWait);
      if (!error_.message.empty()) must_stop_.store(true, std::memory_order_relaxed);
    }
    const uint64_t ended = std::max(bench::monotonic_ns(), measured_from_ + 1);
    // Answers after the end are not counted. Each request in flight ends, if need be by the end of
    // its session.
    while (in_flight_ != 0) transport_.dispatch(kClientWait);
    if (!error_.message.empty()) return std::unexpected(error_);
    result_->pauses = pauses_.finish(std::min(ended, end_));
    result_->seconds = static_cast<double>(std::min(ended, end_) - measured_from_) * 1e-9;
    return result_->to_json();
  }

 private:
  static uint64_t seed_of(const JobInput& input, uint32_t node, uint32_t index) {
    return (input.seed * 1'000'003 + input.times.run_number) * 65'537 +
           (uint64_t{node} << 8 | index);
  }

  void submit() {
    Planned planned{};
    generator_.plan(std::span(&planned, 1));
    const auto key = ordered_index_key(planned.id);
    KvRequest request;
    const char* procedure = "kv.get";
    if (planned.operation != Operation::update) request.get(kRecordsStorage, key, true);
    if (planned.operation != Operation::read) {
      procedure = planned.operation == Operation::update ? "kv.put" : "kv.txn";
      fill_record(record_.data(), input_.shape, planned.id);
      request.put(kRecordsStorage, key, record_);
    }
    const uint64_t begin = bench::monotonic_ns();
    const Status sent =
        transport_.submit(procedure, request.bytes(), is_durable_,
                          [this, planned, begin](Status status, std::span<const std::byte> output) {
                            --in_flight_;
                            take(planned, begin, status, output);
                          });
    if (sent == Status::ok) {
      ++in_flight_;
      generator_.committed(std::span(&planned, 1));
    } else {
      fail(planned, sent);
    }
  }

  void take(const Planned& planned, uint64_t begin, Status status,
            std::span<const std::byte> output) {
    if (status != Status::ok) return fail(planned, status);
    const uint64_t now = bench::monotonic_ns();
    if (planned.operation == Operation::read) check(planned.id, output);
    if (now < measured_from_ || now >= end_) return;
    const auto type = static_cast<uint32_t>(planned.operation);
    ++result_->commits[type];
    pauses_.commit(now);
    result_->latency[type].add(now - begin);
  }

  /// Checks the record that a read returned. It is at the end of the reply (shared/kv).
  void check(uint64_t id, std::span<const std::byte> output) {
    const uint32_t bytes = input_.shape.record_bytes;
    const bool is_whole = output.size() >= bytes &&
                          looks_whole(output.last(bytes).data(), input_.shape.field_bytes(), id, 0);
    if (!is_whole) ++result_->torn_reads;
  }

  void fail(const Planned& planned, Status status) {
    if (!error_.message.empty()) return;
    const bool is_gone = status == Status::outcome_unknown || status == Status::unavailable ||
                         status == Status::recovering;
    error_ = {
        is_gone ? ExitCode::not_running : ExitCode::failed,
        fmt::format("ycsb: client {} of node {}: {} of record {:#x}: {}{}", result_->worker,
                    result_->node, kTypeNames[static_cast<uint32_t>(planned.operation)], planned.id,
                    to_string(status), is_gone ? ": the node has ended the session" : "")};
  }

  bench::Transport& transport_;
  const JobInput input_;
  Generator generator_;
  const bool is_durable_;
  const uint32_t most_in_flight_;
  std::atomic<bool>& must_stop_;
  std::vector<std::byte> record_;
  std::unique_ptr<RunResult> result_;
  bench::PauseRecorder pauses_;
  uint64_t measured_from_ = 0;  // monotonic_ns, as is end_
  uint64_t end_ = 0;
  uint32_t in_flight_ = 0;
  Error error_;
};

}  // namespace

Result<std::vector<std::string>> ClientPort::run_job(const std::string& name,
                                                     const std::string& input) {
  if (name != kRunJob) return cluster_.run_job(name, input);
  ATOLL_ASSIGN(const JobInput parsed, JobInput::parse(input));
  const uint32_t nodes = node_count();
  const uint32_t clients = options_.clients == 0 ? worker_count() : options_.clients;
  std::vector<std::unique_ptr<bench::Transport>> transports;
  for (uint32_t i = 0; i < clients; ++i) {
    ATOLL_ASSIGN(auto transport, cluster_.connect(i % nodes));
    transports.push_back(std::move(transport));
  }
  std::vector<Result<std::string>> outputs(clients);
  std::atomic<bool> must_stop{false};
  {
    std::vector<std::jthread> threads;
    for (uint32_t i = 0; i < clients; ++i) {
      threads.emplace_back([&, i] {
        outputs[i] =
            Client(*transports[i], parsed, i % nodes, nodes, i / nodes, options_, must_stop).go();
      });
    }
  }
  std::vector<std::string> texts;
  for (Result<std::string>& output : outputs) {
    if (!output) return std::unexpected(output.error());
    texts.push_back(*std::move(output));
  }
  return texts;
}

}  // namespace atolldb::ycsb
