// Job "tpcc.run": each worker serves its home warehouses and generates its own load.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "bench/job/run_loop.h"
#include "bench/tpcc/job_input.h"
#include "bench/tpcc/prefetch.h"
#include "bench/tpcc/run_result.h"
#include "bench/tpcc/terminals.h"
#include "bench/tpcc/transactions.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "soc/procedure/procedure.h"

namespace atolldb::tpcc {

namespace {

/// Input of a transaction. Its index is the TransactionType.
using Input =
    std::variant<NewOrderInput, PaymentInput, OrderStatusInput, DeliveryInput, StockLevelInput>;
static_assert(std::variant_size_v<Input> == kTransactionTypes);

/// The part of one worker in a run. Without terminals, the worker draws the next input before it
/// runs a transaction, and prefetches for it.
class Runner {
 public:
  Runner(JobContext& context, const JobInput& input, const Tables& tables,
         std::vector<uint32_t> warehouses)
      : context_(context),
        tables_(tables),
        warehouses_(std::move(warehouses)),
        seed_(input.times.seed_of(input.seed, context.node(), context.worker_ordinal())),
        generator_(input.workload(), seed_),
        loop_(context, "tpcc", tables.control, input.times),
        result_(std::make_unique<RunResult>()) {
    if (input.think_scale == 0) return;
    terminals_.emplace(warehouses_, input.think_scale, seed_,
                       [this] { return generator_.next_type(); });
  }

  Result<std::string> go() {
    if (!terminals_) draw_next();
    ATOLL_TRY(loop_.go(
        *result_,
        [&](uint64_t now) {
          if (terminals_) return serve_terminals(now);
          return run_next() ? last_end_ : uint64_t{0};
        },
        [] {}));
    return result_->to_json();
  }

 private:
  /// Draws the warehouse, the type and the input of the next transaction.
  void draw_next() {
    const uint32_t home =
        warehouses_[generator_.next_home(static_cast<uint32_t>(warehouses_.size()))];
    draw(generator_.next_type(), home, inputs_[next_]);
  }

  void draw(TransactionType type, uint32_t w, Input& input) {
    switch (type) {
      case TransactionType::new_order:
        input.emplace<NewOrderInput>(generator_.new_order(w));
        break;
      case TransactionType::payment:
        input.emplace<PaymentInput>(generator_.payment(w));
        break;
      case TransactionType::order_status:
        input.emplace<OrderStatusInput>(generator_.order_status(w));
        break;
      case TransactionType::delivery:
        input.emplace<DeliveryInput>(generator_.delivery(w));
        break;
      case TransactionType::stock_level:
        input.emplace<StockLevelInput>(generator_.stock_level(w));
        break;
    }
    DCHECK(input.index() == static_cast<size_t>(type));
  }

  /// Runs the transaction whose input was drawn before, after drawing the input of the next one.
  bool run_next() {
    const Input& input = inputs_[next_];
    next_ = 1 - next_;
    draw_next();
    prefetched_ = &inputs_[next_];
    return run_one(input);
  }

  /// Runs the transaction of a terminal if it is due, else pauses. Its time begins when it is due.
  uint64_t serve_terminals(uint64_t now) {
    if (started_ == 0) started_ = now;
    if (terminals_->empty()) return loop_.pause(*result_, ~uint64_t{0});
    const Terminals::Next next = terminals_->first();
    due_ = started_ + loop_.clock().from_ns(next.due_ns);
    if (due_ > now) return loop_.pause(*result_, due_);
    draw(next.type, next.home, inputs_[next_]);
    if (!run_one(inputs_[next_])) return 0;
    terminals_->end_first(loop_.clock().to_ns(last_end_ - started_));
    return last_end_;
  }

  bool run_one(const Input& any) {
    switch (static_cast<TransactionType>(any.index())) {
      case TransactionType::new_order:
        return execute(std::get<NewOrderInput>(any), new_order_, new_order);
      case TransactionType::payment:
        return execute(std::get<PaymentInput>(any), payment_, payment);
      case TransactionType::order_status:
        return execute(std::get<OrderStatusInput>(any), order_status_, order_status);
      case TransactionType::delivery: {
        if (!execute(std::get<DeliveryInput>(any), delivery_, delivery)) return false;
        result_->delivered_orders += delivery_.delivered;
        result_->skipped_deliveries += kDistricts - delivery_.delivered;
        return true;
      }
      case TransactionType::stock_level:
        return execute(std::get<StockLevelInput>(any), stock_level_, stock_level);
    }
    return false;
  }

  /// Runs one transaction until it commits or ends with a user abort. All retries use the same
  /// input. When the body has ended, prefetches for the next transaction.
  template <typename OneInput, typename Output, typename Body>
  bool execute(const OneInput& input, Output& output, Body&& body) {
    constexpr auto kType = static_cast<uint32_t>(Input(std::in_place_type<OneInput>).index());
    const uint64_t begin = terminals_ ? due_ : loop_.clock().ticks();
    const Status status =
        run(context_.transaction(), context_.backoff(), kMaxEpoch, [&](Transaction& txn) {
          const Status done = body(txn, tables_, input, output);
          if (done == Status::ok) prefetch_next(txn);
          return done;
        });
    last_end_ = loop_.clock().ticks();
    if (status == Status::ok) [[likely]] {
      loop_.count(*result_, kType, begin, last_end_);
      return true;
    }
    if (status == Status::user_abort && std::is_same_v<OneInput, NewOrderInput>) {
      ++result_->user_aborts;
      return true;
    }
    loop_.fail(kTransactionNames[kType], status);
    return false;
  }

  /// Prefetches for the next transaction, while `running` is active. Retries of `running` find the
  /// records in the caches already.
  void prefetch_next(Transaction& running) {
    const Input* const next = std::exchange(prefetched_, nullptr);
    if (next == nullptr) return;
    std::visit([&](const auto& input) { prefetch({running, {}}, tables_, input); }, *next);
  }

  JobContext& context_;
  const Tables tables_;
  const std::vector<uint32_t> warehouses_;
  const uint64_t seed_;
  InputGenerator generator_;
  bench::RunLoop loop_;
  std::unique_ptr<RunResult> result_;
  std::optional<Terminals> terminals_;  // nothing: without think times
  uint64_t started_ = 0;                // ticks of the terminals' time 0
  uint64_t due_ = 0;                    // ticks at which the terminal's transaction was due
  uint64_t last_end_ = 0;
  std::array<Input, 2> inputs_;        // of the running transaction, and of the next one
  uint32_t next_ = 0;                  // index of the next input
  const Input* prefetched_ = nullptr;  // the input to prefetch for; null: nothing to prefetch
  NewOrderOutput new_order_;
  PaymentOutput payment_;
  OrderStatusOutput order_status_;
  DeliveryOutput delivery_;
  StockLevelOutput stock_level_;
};

Result<std::string> run_load(JobContext& context) {
  ATOLL_ASSIGN(const JobInput input, JobInput::parse(context.input()));
  ATOLL_TRY(input.times.check("tpcc"));
  ATOLL_ASSIGN(const Tables tables, Tables::open(context.control(), input.scale, input.warehouses));
  // With think times each warehouse has its ten terminals once, so a worker may have none.
  const bool thinks = input.think_scale != 0;
  std::vector<uint32_t> warehouses = (thinks ? owned_warehouses : served_warehouses)(
      input.warehouses, context.node(), context.node_count(), context.worker_ordinal(),
      context.workers_on_node());
  if (warehouses.empty() && !thinks) {
    return make_error(ExitCode::usage,
                      fmt::format("tpcc: node {} has no warehouse: {} warehouses on {} nodes: use "
                                  "at least one per node",
                                  context.node(), input.warehouses, context.node_count()));
  }
  return std::make_unique<Runner>(context, input, tables, std::move(warehouses))->go();
}

ATOLL_REGISTER_JOB(kRun, kRunJob, run_load);

}  // namespace

}  // namespace atolldb::tpcc
