#include "bench/micro/local_cluster.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "shared/base/check.h"
#include "shared/sync/wait_word.h"

namespace atolldb::bench {

LocalCluster::LocalCluster(uint32_t nodes, uint32_t workers_per_node, uint64_t pool_bytes,
                           bool has_clock)
    : nodes_(nodes) {
  const TransactionLimits limits;
  view_.control = reinterpret_cast<ControlSegment*>(map(sizeof(ControlSegment)));
  view_.control->node_count = nodes;
  view_.control->epochs.current.store(2, std::memory_order_relaxed);
  view_.control->epochs.durable.store(1, std::memory_order_relaxed);
  view_.control->epochs.oldest_begin.store(1, std::memory_order_relaxed);
  // Release, as in the coordinator: a thread that sees this state also sees the words stored above.
  view_.control->state.store(static_cast<uint32_t>(ClusterState::running),
                             std::memory_order_release);
  NodeSharedLayout layout;
  layout.worker_count = workers_per_node;
  layout.node_count = nodes;
  for (uint32_t node = 0; node < nodes; ++node) {
    auto* shared = reinterpret_cast<NodeShared*>(map(layout.bytes()));
    layout.format(*shared);
    std::byte* pool = map(pool_bytes);
    PagePool::format(pool, pool_bytes);
    view_.add_node(node, *shared, pool);
  }
  for (uint32_t node = 0; node < nodes; ++node) {
    pools_.push_back(std::make_unique<PagePool>(view_, node));
    for (uint32_t ordinal = 0; ordinal < workers_per_node; ++ordinal) {
      workers_.push_back(std::make_unique<Worker>(view_, *pools_.back(), node, ordinal, limits,
                                                  map(limits.local_bytes())));
      workers_.back()->context.use_directory(&directory_);
    }
  }
  if (!has_clock) return;
  clock_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      tick();
    }
  });
}

LocalCluster::~LocalCluster() {
  clock_.request_stop();
  if (clock_.joinable()) clock_.join();
  workers_.clear();
  pools_.clear();
  for (const auto& [address, bytes] : mappings_) munmap(address, bytes);
}

std::byte* LocalCluster::map(uint64_t bytes) {
  // Calls mmap, because Boost.Interprocess has only shared anonymous memory, and cannot map with
  // MAP_NORESERVE.
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  mappings_.emplace_back(memory, bytes);
  return static_cast<std::byte*>(memory);
}

void LocalCluster::tick() {
  EpochBlock& epochs = view_.control->epochs;
  const uint64_t current = epochs.current.load(std::memory_order_relaxed);
  uint64_t oldest = current;
  uint64_t closed = current - 1;
  for (uint32_t node = 0; node < nodes_; ++node) {
    NodeShared& shared = *view_.shared[node];
    for (uint32_t ordinal = 0; ordinal < shared.slot_count; ++ordinal) {
      const WorkerSlot& slot = shared.slot(ordinal);
      // seq_cst: pairs with the worker's publishing stores (R9, R21).
      oldest = std::min(oldest, slot.begin_epoch.load(std::memory_order_seq_cst));
      const uint64_t in_commit = slot.in_commit_epoch.load(std::memory_order_seq_cst);
      if (in_commit != 0) closed = std::min(closed, in_commit - 1);
    }
  }
  epochs.oldest_begin.store(oldest, std::memory_order_release);
  epochs.durable.store(std::max(closed, epochs.durable.load(std::memory_order_relaxed)),
                       std::memory_order_release);
  epochs.settled.store(epochs.durable.load(std::memory_order_relaxed), std::memory_order_release);
  epochs.current.store(current + 1, std::memory_order_seq_cst);
  // Release pairs with the acquire of threads that load this word before `durable`.
  epochs.durable_signal.fetch_add(1, std::memory_order_release);
  wake(epochs.durable_signal, kWakeAll);
}

StorageControl& LocalCluster::create(std::string_view name, StorageType type,
                                     uint32_t payload_bytes, uint64_t record_count) {
  StorageControl& storage = view_.control->storage(next_storage_);
  storage.id = next_storage_++;
  storage.type = type;
  storage.payload_bytes = payload_bytes;
  storage.record_count = record_count;
  std::memcpy(storage.name, name.data(), name.size());
  // Release: pairs with find_storage.
  storage.state.store(static_cast<uint32_t>(StorageState::ready), std::memory_order_release);
  return storage;
}

}  // namespace atolldb::bench
