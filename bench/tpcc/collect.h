// Reads the facts for the consistency conditions, through the ordinary interface.
//
// REQUIRES: the run has stopped. The reads are split into serializable transactions that fit the
// read set. Without writers, all of them see the same database.
#pragma once

#include <span>
#include <vector>

#include "bench/tpcc/facts.h"
#include "bench/tpcc/tables.h"
#include "engine/transaction/run.h"

namespace atolldb::tpcc {

class FactCollector {
 public:
  FactCollector(Transaction& txn, Backoff& backoff, const Tables& tables)
      : txn_(&txn), backoff_(&backoff), tables_(tables) {}

  /// Fills `facts` for each of `warehouses`. HISTORY is read once for all of them.
  Status collect(std::span<const uint32_t> warehouses, std::vector<WarehouseFacts>& facts);

 private:
  Status collect_warehouse(WarehouseFacts& facts);
  Status collect_customers(uint32_t w, uint32_t d, DistrictFacts& facts);
  /// Reads all orders of a hash storage, in any order of their keys.
  Status collect_hash_orders(std::span<const uint32_t> warehouses,
                             std::vector<WarehouseFacts>& facts);
  Status collect_orders(uint32_t w, uint32_t d, DistrictFacts& facts);
  Status collect_new_orders(uint32_t w, uint32_t d, DistrictFacts& facts);
  Status collect_lines(uint32_t w, uint32_t d, DistrictFacts& facts);
  Status collect_history(std::vector<WarehouseFacts>& facts);

  /// Calls visit(const ScannedRecord&) for each record of [low, high], in transactions of bounded
  /// size.
  template <typename Visit>
  Status scan(const MasterTree& tree, uint64_t low, uint64_t high, Visit&& visit);

  Transaction* txn_;
  Backoff* backoff_;
  Tables tables_;
};

}  // namespace atolldb::tpcc
