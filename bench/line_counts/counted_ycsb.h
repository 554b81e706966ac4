// YCSB for `atoll-lines`.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/line_counts/crew.h"
#include "bench/micro/local_cluster.h"
#include "bench/ycsb/generator.h"
#include "bench/ycsb/job_input.h"
#include "bench/ycsb/table.h"

namespace atolldb::bench {

/// Transactions of one operation, as in the job `ycsb.run`. Each worker loads its part of its
/// node's records.
class CountedYcsb : public CountedLoad {
 public:
  CountedYcsb(LocalCluster& cluster, uint32_t nodes, uint32_t workers_per_node,
              const ycsb::JobInput& input);

  void populate() override;
  bool run_one(uint32_t worker) override;
  void tick() override { cluster_.tick(); }

  /// Returns the bytes of a node's pool that suffice for this input and some inserts.
  static uint64_t pool_bytes(const ycsb::JobInput& input, uint32_t nodes);

 private:
  struct Client {
    ycsb::Generator generator;
    ycsb::Table table;
    ycsb::Observed observed;
  };

  static Status transact(Transaction& txn, Client& client, const ycsb::Planned& planned);

  LocalCluster& cluster_;
  uint32_t nodes_;
  uint32_t workers_per_node_;
  std::vector<std::unique_ptr<Client>> clients_;  // of each worker
};

}  // namespace atolldb::bench
