// TPC-C for `atoll-lines`.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "bench/line_counts/crew.h"
#include "bench/micro/local_cluster.h"
#include "bench/tpcc/inputs.h"
#include "bench/tpcc/job_input.h"
#include "bench/tpcc/tables.h"
#include "bench/tpcc/transactions.h"

namespace atolldb::bench {

/// The workers serve the same warehouses as in the job `tpcc.run`, and prefetch as it does. Each
/// worker loads its own warehouses.
class CountedTpcc : public CountedLoad {
 public:
  CountedTpcc(LocalCluster& cluster, uint32_t nodes, uint32_t workers_per_node,
              const tpcc::JobInput& input);

  void populate() override;
  bool run_one(uint32_t worker) override;
  void tick() override { cluster_.tick(); }

  /// Returns the bytes of a node's pool that suffice for this input and some transactions.
  static uint64_t pool_bytes(const tpcc::JobInput& input, uint32_t nodes);

 private:
  using Input = std::variant<tpcc::NewOrderInput, tpcc::PaymentInput, tpcc::OrderStatusInput,
                             tpcc::DeliveryInput, tpcc::StockLevelInput>;
  struct Terminal {
    Terminal(const tpcc::Workload& workload, uint64_t seed, std::vector<uint32_t> served)
        : generator(workload, seed), warehouses(std::move(served)) {}

    tpcc::InputGenerator generator;
    std::vector<uint32_t> warehouses;
    std::array<Input, 2> inputs;  // of the running transaction, and of the next one
    uint32_t next = 0;            // index of the next input
    tpcc::NewOrderOutput new_order;
    tpcc::PaymentOutput payment;
    tpcc::OrderStatusOutput order_status;
    tpcc::DeliveryOutput delivery;
    tpcc::StockLevelOutput stock_level;
  };

  static Input draw(Terminal& terminal);
  Status transact(Transaction& txn, Terminal& terminal, const Input& input) const;

  LocalCluster& cluster_;
  uint32_t nodes_;
  uint32_t workers_per_node_;
  tpcc::JobInput input_;
  std::unique_ptr<tpcc::Tables> tables_;
  std::vector<std::unique_ptr<Terminal>> terminals_;  // of each worker
};

}  // namespace atolldb::bench
