// A cluster in one process and one mapping, for micro-benchmarks: nodes with workers and an epoch
// clock, without processes, segment files or messages.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/transaction/run.h"
#include "engine/transaction/transaction.h"
#include "shared/memory/cluster_view.h"
#include "shared/memory/page_pool.h"

namespace atolldb::bench {

class LocalCluster {
 public:
  /// One worker, with the objects that a worker thread of a node has.
  struct Worker {
    Worker(const ClusterView& view, PagePool& pool, uint32_t node, uint32_t ordinal,
           const TransactionLimits& limits, std::byte* local)
        : context(view, pool, node, ordinal, metrics, limits.write_set),
          transaction(context, limits, local),
          backoff(node * 256 + ordinal + 1) {}
    ~Worker() { context.leave(); }

    template <typename Body>
    Status run(Body&& body) {
      return atolldb::run(transaction, backoff, kMaxEpoch, body);
    }

    WorkerMetrics metrics;
    WorkerContext context;
    Transaction transaction;
    Backoff backoff;
  };

  /// Reserves `pool_bytes` of address space per node. The kernel allocates memory at its first use.
  /// `has_clock`: a thread calls `tick` every 10 ms.
  LocalCluster(uint32_t nodes, uint32_t workers_per_node, uint64_t pool_bytes,
               bool has_clock = true);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  const ClusterView& view() const { return view_; }
  PagePool& pool(uint32_t node) { return *pools_[node]; }
  const PageDirectory& directory() const { return directory_; }
  /// `index`: by node, then ordinal.
  Worker& worker(uint32_t index) { return *workers_[index]; }
  /// Creates an array with `record_count` records, or a Master-tree if `record_count` is 0.
  StorageControl& create(std::string_view name, uint32_t payload_bytes, uint64_t record_count) {
    return create(name, record_count != 0 ? StorageType::array : StorageType::mastertree,
                  payload_bytes, record_count);
  }
  StorageControl& create(std::string_view name, StorageType type, uint32_t payload_bytes,
                         uint64_t record_count);
  /// Does the coordinator's work of one epoch. Thread: one at a time.
  void tick();

 private:
  std::byte* map(uint64_t bytes);

  uint32_t nodes_;
  std::vector<std::pair<void*, uint64_t>> mappings_;
  ClusterView view_;
  PageDirectory directory_;
  std::vector<std::unique_ptr<PagePool>> pools_;
  std::vector<std::unique_ptr<Worker>> workers_;
  uint32_t next_storage_ = 1;
  std::jthread clock_;
};

}  // namespace atolldb::bench
