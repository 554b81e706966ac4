// Job "ycsb.load": each worker loads its share of its node's partition.
#include <fmt/format.h>

#include <algorithm>

#include "bench/common/clock.h"
#include "bench/job/load_error.h"
#include "bench/job/run_loop.h"
#include "bench/job/try.h"
#include "bench/ycsb/table.h"
#include "shared/base/try.h"
#include "soc/procedure/procedure.h"

namespace atolldb::ycsb {

namespace {

constexpr uint64_t kBatch = 64;  // records per transaction, if the write set has room

/// Loads the records by which workers stop each other and publish how many records they have
/// inserted.
Status load_control(JobContext& context, const Table& table) {
  return run(context.transaction(), context.backoff(), kMaxEpoch, [&](Transaction& txn) {
    if (context.node() == 0 && context.worker_ordinal() == 0) {
      const bench::StopRow stop{};
      BENCH_TRY(table.control().update(txn, 0, 0, sizeof(stop), &stop));
    }
    const LaneRow lane{.exists = 1, .inserted = 0};
    return table.control().update(txn, lane_row_at(context.node(), context.worker_ordinal()), 0,
                                  sizeof(lane), &lane);
  });
}

Status load_batch(JobContext& context, Table& table, uint64_t first, uint64_t end) {
  return run(context.transaction(), context.backoff(), kMaxEpoch, [&](Transaction& txn) {
    for (uint64_t item = first; item < end; ++item) {
      BENCH_TRY(
          table.write_loaded(txn, table.keyspace().id_of(context.node(), number_of(0, item))));
    }
    return Status::ok;
  });
}

Result<std::string> load(JobContext& context) {
  ATOLL_ASSIGN(const JobInput input, JobInput::parse(context.input()));
  ATOLL_ASSIGN(Table table, Table::open(context.control(), input, context.node_count()));
  const uint64_t start_ns = bench::monotonic_ns();
  const uint32_t node = context.node();
  const auto failed = [&](Status status) {
    return std::unexpected(
        bench::load_error("ycsb", status, node, "the records", "load fewer --records"));
  };
  if (const Status status = load_control(context, table); status != Status::ok) {
    return failed(status);
  }
  const uint64_t records = table.keyspace().records_of(node);
  const uint64_t first = records * context.worker_ordinal() / context.workers_on_node();
  const uint64_t end = records * (context.worker_ordinal() + 1) / context.workers_on_node();
  uint64_t batch = kBatch;
  for (uint64_t item = first; item < end;) {
    if (context.should_stop()) return make_error(ExitCode::failed, "ycsb: load: cancelled");
    const Status status = load_batch(context, table, item, std::min(end, item + batch));
    if (status == Status::transaction_too_large && batch > 1) {
      batch /= 2;
      continue;
    }
    if (status != Status::ok) return failed(status);
    item = std::min(end, item + batch);
  }
  return fmt::format(R"({{"records":{},"seconds":{:.3f}}})", end - first,
                     static_cast<double>(bench::monotonic_ns() - start_ns) * 1e-9);
}

ATOLL_REGISTER_JOB(kLoad, kLoadJob, load);

}  // namespace

}  // namespace atolldb::ycsb
