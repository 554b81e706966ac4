// A cluster in one process over one mapping: nodes with workers and an epoch clock, without
// processes, segments and messages. Runs TPC-C jobs on one thread per worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/tpcc/job_input.h"
#include "bench/tpcc/tables.h"
#include "engine/transaction/run.h"
#include "engine/transaction/transaction.h"
#include "shared/memory/cluster_view.h"
#include "soc/procedure/procedure.h"

namespace atolldb::test {

/// A small database with every kind of row of the full one. It loads in a hundredth of the time.
inline constexpr tpcc::Scale kSmallScale{
    .items = 1'000, .customers = 60, .new_orders = 18, .last_names = 20};

class MiniCluster {
 public:
  struct Options {
    uint32_t nodes = 1;
    uint32_t workers = 1;
    uint64_t pool_bytes = uint64_t{64} << 20;
    TransactionLimits limits = {};
  };

  explicit MiniCluster(const Options& options);
  ~MiniCluster();

  /// Adds the storages to the catalog.
  void create(const std::vector<tpcc::StorageSpec>& specs);

  /// Runs the registered job on all workers at once. Returns the results ordered by node, then
  /// worker.
  std::vector<Result<std::string>> run_job(std::string_view name, const std::string& input);

  /// Runs a transaction on worker 0 of node 0. Thread: the caller's.
  Status transact(const std::function<Status(Transaction&)>& body);

  ControlSegment& control() { return *control_; }
  Transaction& transaction(uint32_t node = 0, uint32_t worker = 0);
  Backoff& backoff() { return backoff_; }

 private:
  struct Worker;

  void tick();

  Options options_;
  std::vector<void*> mappings_;
  std::vector<uint64_t> mapping_bytes_;
  ControlSegment* control_ = nullptr;
  ClusterView view_;
  std::vector<std::unique_ptr<PagePool>> pools_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Backoff backoff_{1};
  uint32_t next_storage_ = 1;
  std::atomic<bool> stop_{false};
  std::thread clock_;

  std::byte* map(uint64_t bytes);
};

}  // namespace atolldb::test
