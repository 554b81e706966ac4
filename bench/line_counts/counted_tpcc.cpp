#include "bench/line_counts/counted_tpcc.h"

#include "bench/micro/loaded.h"
#include "bench/tpcc/load.h"
#include "bench/tpcc/prefetch.h"
#include "shared/base/check.h"

namespace atolldb::bench {

CountedTpcc::CountedTpcc(LocalCluster& cluster, uint32_t nodes, uint32_t workers_per_node,
                         const tpcc::JobInput& input)
    : cluster_(cluster), nodes_(nodes), workers_per_node_(workers_per_node), input_(input) {
  for (const StorageSpec& spec : tpcc::storage_specs(input.warehouses, input.scale)) {
    cluster.create(spec.name, spec.type, spec.payload_bytes, spec.record_count);
  }
  Result<tpcc::Tables> tables =
      tpcc::Tables::open(*cluster.view().control, input.scale, input.warehouses);
  CHECK(tables.has_value());
  tables_ = std::make_unique<tpcc::Tables>(*std::move(tables));
  for (uint32_t i = 0; i < nodes * workers_per_node; ++i) {
    const uint32_t node = i / workers_per_node;
    auto terminal =
        std::make_unique<Terminal>(input.workload(), input.seed * 1'000 + i,
                                   tpcc::served_warehouses(input.warehouses, node, nodes,
                                                           i % workers_per_node, workers_per_node));
    CHECK(!terminal->warehouses.empty());
    terminal->inputs[0] = draw(*terminal);
    terminals_.push_back(std::move(terminal));
  }
}

uint64_t CountedTpcc::pool_bytes(const tpcc::JobInput& input, uint32_t nodes) {
  const uint64_t per_warehouse =
      uint64_t{input.scale.items} * 700 + uint64_t{input.scale.customers} * 30'000;
  const uint64_t warehouses = (input.warehouses + nodes - 1) / nodes;
  return (uint64_t{256} << 20) + warehouses * (per_warehouse + (uint64_t{32} << 20));
}

void CountedTpcc::populate() {
  const tpcc::NurandConstants constants = tpcc::NurandConstants::for_load(input_.load_seed);
  for (uint32_t i = 0; i < nodes_ * workers_per_node_; ++i) {
    active_crew->become(i);
    LocalCluster::Worker& self = cluster_.worker(i);
    const auto loader_for = [&](uint32_t part) {
      return tpcc::Loader(self.transaction, self.backoff, *tables_, constants,
                          input_.load_seed * 1'000'003 + part);
    };
    if (i == 0) expect_ok(loader_for(0).load_items());
    for (const uint32_t w : tpcc::owned_warehouses(input_.warehouses, i / workers_per_node_, nodes_,
                                                   i % workers_per_node_, workers_per_node_)) {
      expect_ok(loader_for(w).load_warehouse(w));
    }
    self.context.leave();
  }
}

CountedTpcc::Input CountedTpcc::draw(Terminal& terminal) {
  const auto count = static_cast<uint32_t>(terminal.warehouses.size());
  const uint32_t home = terminal.warehouses[terminal.generator.next_home(count)];
  switch (terminal.generator.next_type()) {
    case tpcc::TransactionType::new_order:
      return terminal.generator.new_order(home);
    case tpcc::TransactionType::payment:
      return terminal.generator.payment(home);
    case tpcc::TransactionType::order_status:
      return terminal.generator.order_status(home);
    case tpcc::TransactionType::delivery:
      return terminal.generator.delivery(home);
    case tpcc::TransactionType::stock_level:
      return terminal.generator.stock_level(home);
  }
  return {};
}

Status CountedTpcc::transact(Transaction& txn, Terminal& terminal, const Input& input) const {
  switch (static_cast<tpcc::TransactionType>(input.index())) {
    case tpcc::TransactionType::new_order:
      return tpcc::new_order(txn, *tables_, std::get<tpcc::NewOrderInput>(input),
                             terminal.new_order);
    case tpcc::TransactionType::payment:
      return tpcc::payment(txn, *tables_, std::get<tpcc::PaymentInput>(input), terminal.payment);
    case tpcc::TransactionType::order_status:
      return tpcc::order_status(txn, *tables_, std::get<tpcc::OrderStatusInput>(input),
                                terminal.order_status);
    case tpcc::TransactionType::delivery:
      return tpcc::delivery(txn, *tables_, std::get<tpcc::DeliveryInput>(input), terminal.delivery);
    case tpcc::TransactionType::stock_level:
      return tpcc::stock_level(txn, *tables_, std::get<tpcc::StockLevelInput>(input),
                               terminal.stock_level);
  }
  return Status::invalid_argument;
}

bool CountedTpcc::run_one(uint32_t worker) {
  Terminal& terminal = *terminals_[worker];
  const Input& input = terminal.inputs[terminal.next];
  terminal.next = 1 - terminal.next;
  Input& next = terminal.inputs[terminal.next] = draw(terminal);
  uint32_t attempts = 0;
  const Status status = cluster_.worker(worker).run([&](Transaction& txn) {
    if (attempts++ != 0) active_crew->pass();  // as in the time of the back-off
    const Status done = transact(txn, terminal, input);
    if (done != Status::ok || attempts != 1) return done;
    std::visit([&](const auto& ahead) { prefetch({txn, {}}, *tables_, ahead); }, next);
    return done;
  });
  aborts_ += attempts - 1;
  if (status != Status::user_abort) expect_ok(status);
  return status == Status::ok;
}

}  // namespace atolldb::bench
