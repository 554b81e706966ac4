// Job "tpcc.run": a worker serves its home warehouses and generates its own load.
#include <fmt/format.h>

#include <memory>

#include "bench/common/clock.h"
#include "bench/tpcc/job_input.h"
#include "bench/tpcc/run_result.h"
#include "bench/tpcc/transactions.h"
#include "soc/procedure/procedure.h"

namespace atolldb::tpcc {

namespace {

/// One worker's part of a run.
class Runner {
 public:
  Runner(JobContext& context, const JobInput& input, const Tables& tables,
         std::vector<uint32_t> warehouses)
      : context_(context),
        input_(input),
        tables_(tables),
        warehouses_(std::move(warehouses)),
        generator_(input.workload(), seed_of(context, input)),
        result_(std::make_unique<RunResult>()) {
    result_->node = context.node();
    result_->worker = context.worker_ordinal();
  }

  Result<std::string> go() {
    bench::wait_until_ns(input_.start_ns);
    const uint64_t start = clock_.ticks();
    const uint64_t warm = start + clock_.from_ns(input_.warmup_ms * 1'000'000);
    const uint64_t end = warm + clock_.from_ns(input_.run_ms * 1'000'000);
    uint64_t now = run_until(start, warm);
    // What was counted so far was the warm-up.
    const EngineCounts before = EngineCounts::read(context_.worker().metrics());
    const std::string ended_early = result_->ended_early;
    *result_ = RunResult{};
    result_->node = context_.node();
    result_->worker = context_.worker_ordinal();
    result_->ended_early = ended_early;
    const uint64_t measured_from = now;
    if (ended_early.empty() && error_.message.empty()) now = run_until(now, end);
    result_->seconds = static_cast<double>(clock_.to_ns(now - measured_from)) * 1e-9;
    result_->engine = EngineCounts::read(context_.worker().metrics()).since(before);
    if (!error_.message.empty()) return std::unexpected(error_);
    return result_->to_json();
  }

 private:
  static uint64_t seed_of(JobContext& context, const JobInput& input) {
    return (input.seed * 1'000'003 + input.run_number) * 65'537 +
           (uint64_t{context.node()} << 8 | context.worker_ordinal());
  }

  /// Runs transactions until `end`; returns the time when it stopped.
  uint64_t run_until(uint64_t now, uint64_t end) {
    const uint64_t check_every = clock_.from_ns(20'000'000);
    uint64_t next_check = now;
    while (now < end) {
      if (now >= next_check) {
        next_check = now + check_every;
        if (must_stop()) break;
      }
      const uint32_t home =
          warehouses_[generator_.next_home(static_cast<uint32_t>(warehouses_.size()))];
      if (!run_one(generator_.next_type(), home)) {
        now = clock_.ticks();
        break;
      }
      now = last_end_;
    }
    return now;
  }

  bool run_one(TransactionType type, uint32_t w) {
    switch (type) {
      case TransactionType::new_order:
        return execute(type, generator_.new_order(w), new_order_, new_order);
      case TransactionType::payment:
        return execute(type, generator_.payment(w), payment_, payment);
      case TransactionType::order_status:
        return execute(type, generator_.order_status(w), order_status_, order_status);
      case TransactionType::delivery: {
        if (!execute(type, generator_.delivery(w), delivery_, delivery)) return false;
        result_->delivered_orders += delivery_.delivered;
        result_->skipped_deliveries += kDistricts - delivery_.delivered;
        return true;
      }
      case TransactionType::stock_level:
        return execute(type, generator_.stock_level(w), stock_level_, stock_level);
    }
    return false;
  }

  /// Runs one transaction to its commit or user abort, with all retries on the same input.
  template <typename Input, typename Output, typename Body>
  bool execute(TransactionType type, const Input& input, Output& output, Body&& body) {
    const uint64_t begin = clock_.ticks();
    const Status status = run(context_.transaction(), context_.backoff(), kMaxEpoch,
                              [&](Transaction& txn) { return body(txn, tables_, input, output); });
    last_end_ = clock_.ticks();
    if (status == Status::ok) [[likely]] {
      ++result_->commits[static_cast<uint32_t>(type)];
      result_->latency[static_cast<uint32_t>(type)].add(clock_.to_ns(last_end_ - begin));
      return true;
    }
    if (status == Status::user_abort && type == TransactionType::new_order) {
      ++result_->user_aborts;
      return true;
    }
    fail(type, status);
    return false;
  }

  void fail(TransactionType type, Status status) {
    if (status == Status::volatile_pool_exhausted) {
      result_->ended_early = fmt::format("the volatile pool of node {} is full", context_.node());
      tell_others();
      return;
    }
    const ExitCode code =
        status == Status::cluster_failed ? ExitCode::not_running : ExitCode::failed;
    error_ = {code, fmt::format("tpcc: {} on node {}: {}: {}",
                                kTransactionNames[static_cast<uint32_t>(type)], context_.node(),
                                to_string(status),
                                status == Status::cluster_failed
                                    ? "the cluster has stopped"
                                    : "load the database anew and report this if it stays")};
    tell_others();
  }

  /// A run ends for all when it ends for one.
  void tell_others() {
    const ControlRow row{input_.run_number};
    // If this fails too, the others run to their end.
    static_cast<void>(run(
        context_.transaction(), context_.backoff(), kMaxEpoch,
        [&](Transaction& txn) { return tables_.control.update(txn, 0, 0, sizeof(row), &row); }));
  }

  bool must_stop() {
    if (context_.should_stop()) {
      result_->ended_early = "the job was cancelled or the cluster stops";
      return true;
    }
    ControlRow row{};
    const Status status = run(context_.transaction(), context_.backoff(), kMaxEpoch,
                              [&](Transaction& txn) { return tables_.control.get(txn, 0, &row); });
    if (status != Status::ok || row.stopped_run != input_.run_number) return false;
    result_->ended_early = "another worker had to stop";
    return true;
  }

  JobContext& context_;
  const JobInput& input_;
  const Tables tables_;
  const std::vector<uint32_t> warehouses_;
  InputGenerator generator_;
  const bench::TickClock clock_;
  std::unique_ptr<RunResult> result_;
  Error error_;
  uint64_t last_end_ = 0;
  NewOrderOutput new_order_;
  PaymentOutput payment_;
  OrderStatusOutput order_status_;
  DeliveryOutput delivery_;
  StockLevelOutput stock_level_;
};

Result<std::string> run_load(JobContext& context) {
  const Result<JobInput> input = JobInput::parse(context.input());
  if (!input) return std::unexpected(input.error());
  const Result<Tables> tables = Tables::open(context.control(), input->scale);
  if (!tables) return std::unexpected(tables.error());
  std::vector<uint32_t> warehouses =
      served_warehouses(input->warehouses, context.node(), context.node_count(),
                        context.worker_ordinal(), context.workers_on_node());
  if (warehouses.empty()) {
    return make_error(ExitCode::usage,
                      fmt::format("tpcc: node {} has no warehouse: {} warehouses on {} nodes: use "
                                  "at least one a node",
                                  context.node(), input->warehouses, context.node_count()));
  }
  return std::make_unique<Runner>(context, *input, *tables, std::move(warehouses))->go();
}

ATOLL_REGISTER_JOB(kRun, kRunJob, run_load);

}  // namespace

}  // namespace atolldb::tpcc
