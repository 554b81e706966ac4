// Job "ycsb.run": each worker generates its own load.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "bench/job/run_loop.h"
#include "bench/job/try.h"
#include "bench/ycsb/generator.h"
#include "bench/ycsb/run_result.h"
#include "bench/ycsb/table.h"
#include "shared/base/try.h"

namespace atolldb::ycsb {

namespace {

/// Number of records that are read ahead together. A core can have about as many cache misses in
/// flight.
constexpr uint32_t kReadAhead = 16;

/// The part of one worker in a run.
class Runner {
 public:
  Runner(JobContext& context, const JobInput& input, const Table& table)
      : context_(context),
        table_(table),
        generator_(input, context.node(), context.node_count(), context.worker_ordinal(),
                   input.times.seed_of(input.seed, context.node(), context.worker_ordinal())),
        goes_by_latest_(input.distribution == Distribution::latest &&
                        percent_of(input.mix, Operation::insert) != 0),
        prefetches_(input.prefetch),
        updates_blindly_(input.blind_updates),
        operations_(input.operations),
        group_(prefetches_ ? std::max(1u, kReadAhead / input.operations) : 1),
        planned_(size_t{group_} * operations_),
        ids_(planned_.size()),
        next_(planned_.size()),
        loop_(context, "ycsb", table.control(), input.times),
        result_(std::make_unique<RunResult>()) {}

  Result<std::string> go() {
    LaneRow row{};
    const Status status = read_lane(context_.node(), context_.worker_ordinal(), row);
    if (status != Status::ok || row.exists == 0) {
      return make_error(ExitCode::failed, "ycsb: run: the records are not loaded: load them first");
    }
    generator_.set_inserted(row.inserted);
    ATOLL_TRY(loop_.go(
        *result_, [this](uint64_t now) { return transact(now); }, [this] { exchange_lanes(); }));
    publish_lane();
    result_->updates = updates_;
    result_->inserted = generator_.inserted();
    result_->torn_reads = observed_.torn;
    return result_->to_json();
  }

 private:
  /// Runs one transaction until it commits. All retries use the same operations. Its time begins at
  /// `now`, the end of the previous transaction, so the clock is read once per transaction.
  uint64_t transact(uint64_t now) {
    if (next_ == planned_.size()) plan_group();
    begin_ = now;
    const std::span<const Planned> operations(&planned_[next_], operations_);
    const Status status = run(context_.transaction(), context_.backoff(), kMaxEpoch,
                              [&](Transaction& txn) { return body(txn, operations); });
    const uint64_t end = loop_.clock().ticks();
    if (status != Status::ok) [[unlikely]] {
      fail(status);
      return 0;
    }
    generator_.committed(operations);
    next_ += operations_;
    const uint32_t type =
        operations_ == 1 ? static_cast<uint32_t>(operations[0].operation) : kManyOperations;
    loop_.count(*result_, type, begin_ - share_, end);
    updates_ += attempt_updates_;
    result_->scanned_records += observed_.scanned;
    return end;
  }

  /// Plans the transactions of the next group.
  void plan_group() {
    generator_.plan(planned_);
    next_ = 0;
    reads_ahead_ = prefetches_;
    share_ = 0;
  }

  /// Reads ahead for all transactions of the group, within the first one. Each transaction is
  /// charged its share of the time since the end of the previous group.
  void read_ahead(Transaction& txn) {
    reads_ahead_ = false;
    ids_.clear();
    for (const Planned& planned : planned_) {
      // A blind write needs no page of a snapshot, and prefetching reads such pages.
      if (!updates_blindly_ || planned.operation != Operation::update) ids_.push_back(planned.id);
    }
    table_.prefetch(txn, ids_);
    if (group_ == 1) return;
    const uint64_t now = loop_.clock().ticks();
    share_ = (now - begin_) / group_;
    begin_ = now;
  }

  Status body(Transaction& txn, std::span<const Planned> operations) {
    attempt_updates_ = 0;
    observed_.scanned = 0;
    if (reads_ahead_) read_ahead(txn);
    for (const Planned& planned : operations) {
      failed_ = &planned;
      switch (planned.operation) {
        case Operation::read:
          BENCH_TRY(table_.read(txn, planned.id, observed_));
          break;
        case Operation::update:
          if (updates_blindly_) {
            BENCH_TRY(table_.overwrite(txn, planned.id));
            break;
          }
          ++attempt_updates_;
          BENCH_TRY(table_.update(txn, planned.id, planned.field));
          break;
        case Operation::insert:
          BENCH_TRY(table_.insert(txn, planned.id));
          break;
        case Operation::scan:
          BENCH_TRY(table_.scan(txn, planned.id, planned.scan_length, observed_));
          break;
        case Operation::read_modify_write:
          ++attempt_updates_;
          BENCH_TRY(table_.read_modify_write(txn, planned.id, planned.field, observed_));
          break;
      }
    }
    return Status::ok;
  }

  void fail(Status status) {
    if (status == Status::transaction_too_large) {
      loop_.fail(fmt::format(
          "ycsb: a transaction of {} operations does not fit the access sets: lower --operations "
          "or --scan-length, or raise memory.read_set and memory.write_set",
          operations_));
      return;
    }
    loop_.fail(fmt::format("{} of record {:#x}",
                           kTypeNames[static_cast<uint32_t>(failed_->operation)], failed_->id),
               status);
  }

  Status read_lane(uint32_t node, uint32_t worker, LaneRow& row) {
    return run(context_.transaction(), context_.backoff(), kMaxEpoch, [&](Transaction& txn) {
      return table_.control().get(txn, lane_row_at(node, worker), 0, sizeof(row), &row);
    });
  }

  void publish_lane() {
    if (generator_.inserted() == published_) return;
    const LaneRow row{.exists = 1, .inserted = generator_.inserted()};
    // If this fails, other workers see the older count until the next call succeeds.
    const Status status =
        run(context_.transaction(), context_.backoff(), kMaxEpoch, [&](Transaction& txn) {
          return table_.control().update(
              txn, lane_row_at(context_.node(), context_.worker_ordinal()), 0, sizeof(row), &row);
        });
    if (status == Status::ok) published_ = row.inserted;
  }

  /// Exchanges the insert counts of all workers, about fifty times a second.
  void exchange_lanes() {
    publish_lane();
    if (!goes_by_latest_) return;
    for (uint32_t node = 0; node < context_.node_count(); ++node) {
      std::vector<uint64_t> inserted;
      LaneRow row{};
      while (inserted.size() < kMaxLanes &&
             read_lane(node, static_cast<uint32_t>(inserted.size()), row) == Status::ok &&
             row.exists != 0) {
        inserted.push_back(row.inserted);
      }
      generator_.set_inserted_of(node, std::move(inserted));
    }
  }

  JobContext& context_;
  Table table_;
  Generator generator_;
  const bool goes_by_latest_;
  const bool prefetches_;
  const bool updates_blindly_;
  const uint32_t operations_;  // per transaction
  const uint32_t group_;       // transactions planned and read ahead together
  std::vector<Planned> planned_;
  std::vector<uint64_t> ids_;
  size_t next_;  // first operation of the next transaction
  bool reads_ahead_ = false;
  uint64_t begin_ = 0;  // start of the current transaction
  uint64_t share_ = 0;  // the transaction's share of the time to plan and read ahead its group
  bench::RunLoop loop_;
  std::unique_ptr<RunResult> result_;
  Observed observed_;
  uint64_t updates_ = 0;
  uint64_t attempt_updates_ = 0;
  uint64_t published_ = 0;
  const Planned* failed_ = nullptr;
};

Result<std::string> run_load(JobContext& context) {
  ATOLL_ASSIGN(const JobInput input, JobInput::parse(context.input()));
  ATOLL_TRY(input.times.check("ycsb"));
  ATOLL_ASSIGN(const Table table, Table::open(context.control(), input, context.node_count()));
  return std::make_unique<Runner>(context, input, table)->go();
}

ATOLL_REGISTER_JOB(kRun, kRunJob, run_load);

}  // namespace

}  // namespace atolldb::ycsb
