// Job "tpcc.load": each worker populates its own warehouses. The first worker of node 0 also loads
// ITEM.
#include <fmt/format.h>

#include "bench/common/clock.h"
#include "bench/job/load_error.h"
#include "bench/job/run_loop.h"
#include "bench/tpcc/job_input.h"
#include "bench/tpcc/load.h"
#include "shared/base/try.h"
#include "soc/procedure/procedure.h"

namespace atolldb::tpcc {

namespace {

Error load_error(Status status, uint32_t node, const std::string& what) {
  return bench::load_error("tpcc", status, node, what, "load fewer warehouses");
}

/// Loads the StopRow, by which a worker that ends early stops the others.
Status load_control(Transaction& txn, Backoff& backoff, const Tables& tables) {
  const bench::StopRow row{};
  return run(txn, backoff, kMaxEpoch, [&](Transaction& inner) {
    return tables.control.update(inner, 0, 0, sizeof(row), &row);
  });
}

Result<std::string> load(JobContext& context) {
  ATOLL_ASSIGN(const JobInput input, JobInput::parse(context.input()));
  ATOLL_ASSIGN(const Tables tables, Tables::open(context.control(), input.scale, input.warehouses));
  const NurandConstants constants = NurandConstants::for_load(input.load_seed);
  const uint32_t node = context.node();
  const uint64_t start_ns = bench::monotonic_ns();
  // Each warehouse has its own random numbers, so the data do not depend on the number of nodes and
  // workers.
  const auto loader_for = [&](uint32_t part) {
    return Loader(context.transaction(), context.backoff(), tables, constants,
                  input.load_seed * 1'000'003 + part);
  };
  if (node == 0 && context.worker_ordinal() == 0) {
    Status status = load_control(context.transaction(), context.backoff(), tables);
    if (status == Status::ok) status = loader_for(0).load_items();
    if (status != Status::ok) return std::unexpected(load_error(status, node, "ITEM"));
  }
  const std::vector<uint32_t> own =
      owned_warehouses(input.warehouses, node, context.node_count(), context.worker_ordinal(),
                       context.workers_on_node());
  for (const uint32_t w : own) {
    if (context.should_stop()) return make_error(ExitCode::failed, "tpcc: load: cancelled");
    const Status status = loader_for(w).load_warehouse(w);
    if (status != Status::ok) {
      return std::unexpected(load_error(status, node, fmt::format("warehouse {}", w)));
    }
  }
  return fmt::format(R"({{"warehouses":{},"seconds":{:.3f}}})", own.size(),
                     static_cast<double>(bench::monotonic_ns() - start_ns) * 1e-9);
}

ATOLL_REGISTER_JOB(kLoad, kLoadJob, load);

}  // namespace

}  // namespace atolldb::tpcc
