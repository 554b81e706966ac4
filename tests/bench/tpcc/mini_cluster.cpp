#include "tests/bench/tpcc/mini_cluster.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "shared/base/check.h"

namespace atolldb::test {

struct MiniCluster::Worker {
  Worker(const ClusterView& view, PagePool& pool, uint32_t node, uint32_t ordinal,
         const TransactionLimits& limits, std::byte* local)
      : context(view, pool, node, ordinal, metrics, limits.write_set),
        transaction(context, limits, local),
        backoff(node * 256 + ordinal + 1) {}

  WorkerMetrics metrics;
  WorkerContext context;
  Transaction transaction;
  Backoff backoff;
};

std::byte* MiniCluster::map(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  mappings_.push_back(memory);
  mapping_bytes_.push_back(bytes);
  return static_cast<std::byte*>(memory);
}

MiniCluster::MiniCluster(const Options& options) : options_(options) {
  control_ = reinterpret_cast<ControlSegment*>(map(sizeof(ControlSegment)));
  control_->node_count = options.nodes;
  control_->epochs.current.store(2, std::memory_order_relaxed);
  control_->epochs.durable.store(1, std::memory_order_relaxed);
  control_->epochs.oldest_begin.store(1, std::memory_order_relaxed);
  control_->state.store(static_cast<uint32_t>(ClusterState::running), std::memory_order_release);
  view_.control = control_;
  NodeSharedLayout layout;
  layout.worker_count = options.workers;
  layout.node_count = options.nodes;
  for (uint32_t node = 0; node < options.nodes; ++node) {
    auto* shared = reinterpret_cast<NodeShared*>(map(layout.bytes()));
    layout.format(*shared);
    std::byte* pool = map(options.pool_bytes);
    PagePool::format(pool, options.pool_bytes);
    view_.add_node(node, *shared, pool);
  }
  for (uint32_t node = 0; node < options.nodes; ++node) {
    pools_.push_back(std::make_unique<PagePool>(view_, node));
    for (uint32_t ordinal = 0; ordinal < options.workers; ++ordinal) {
      workers_.push_back(std::make_unique<Worker>(
          view_, *pools_.back(), node, ordinal, options.limits, map(options.limits.local_bytes())));
    }
  }
  clock_ = std::thread([this] {
    while (!stop_.load(std::memory_order_relaxed)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      tick();
    }
  });
}

MiniCluster::~MiniCluster() {
  stop_.store(true, std::memory_order_relaxed);
  clock_.join();
  workers_.clear();
  pools_.clear();
  for (size_t i = 0; i < mappings_.size(); ++i) munmap(mappings_[i], mapping_bytes_[i]);
}

void MiniCluster::tick() {
  EpochBlock& epochs = control_->epochs;
  const uint64_t current = epochs.current.load(std::memory_order_relaxed);
  uint64_t oldest = current;
  uint64_t final_epoch = current - 1;
  for (uint32_t node = 0; node < options_.nodes; ++node) {
    NodeShared& shared = *view_.shared[node];
    for (uint32_t ordinal = 0; ordinal < shared.slot_count; ++ordinal) {
      const WorkerSlot& slot = shared.slot(ordinal);
      // seq_cst: pairs with the worker's publishing stores (R9, R21).
      oldest = std::min(oldest, slot.begin_epoch.load(std::memory_order_seq_cst));
      const uint64_t in_commit = slot.in_commit_epoch.load(std::memory_order_seq_cst);
      if (in_commit != 0) final_epoch = std::min(final_epoch, in_commit - 1);
    }
  }
  epochs.oldest_begin.store(oldest, std::memory_order_release);
  epochs.durable.store(std::max(final_epoch, epochs.durable.load(std::memory_order_relaxed)),
                       std::memory_order_release);
  epochs.settled.store(epochs.durable.load(std::memory_order_relaxed), std::memory_order_release);
  epochs.current.store(current + 1, std::memory_order_seq_cst);
}

void MiniCluster::create(const std::vector<tpcc::StorageSpec>& specs) {
  for (const tpcc::StorageSpec& spec : specs) {
    StorageControl& storage = control_->storage(next_storage_);
    storage.id = next_storage_++;
    storage.type = spec.type;
    storage.payload_bytes = spec.payload_bytes;
    storage.record_count = spec.record_count;
    std::memcpy(storage.name, spec.name.data(), spec.name.size());
    // Release: pairs with find_storage.
    storage.state.store(static_cast<uint32_t>(StorageState::ready), std::memory_order_release);
  }
}

std::vector<Result<std::string>> MiniCluster::run_job(std::string_view name,
                                                      const std::string& input) {
  JobFunction job = nullptr;
  for (const auto* entry = ProcedureRegistration::first(); entry; entry = entry->next()) {
    if (name == entry->entry().name) job = entry->entry().job;
  }
  CHECK(job != nullptr);
  std::vector<Result<std::string>> results(workers_.size());
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    threads.emplace_back([&, i] {
      JobContext context(workers_[i]->transaction, workers_[i]->backoff, input,
                         i % options_.workers, options_.workers, stop_);
      results[i] = job(context);
      workers_[i]->context.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

Status MiniCluster::transact(const std::function<Status(Transaction&)>& body) {
  const Status status = run(workers_[0]->transaction, backoff_, kMaxEpoch, body);
  workers_[0]->context.leave();
  return status;
}

Transaction& MiniCluster::transaction(uint32_t node, uint32_t worker) {
  return workers_[node * options_.workers + worker]->transaction;
}

}  // namespace atolldb::test
