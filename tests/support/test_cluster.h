// In-test cluster: shared memory, epoch clock and workers, without launcher and coordinator.
//
// Thread mode: all workers run in this process, over one mapping. Process mode: `run_processes`
// forks one child per node, and every child maps every segment again at other addresses.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/transaction/run.h"
#include "engine/transaction/transaction.h"
#include "shared/base/check.h"
#include "shared/memory/cluster_view.h"
#include "shared/memory/page_pool.h"

namespace atolldb::test {

struct TestClusterOptions {
  uint64_t pool_bytes = uint64_t{64} << 20;
  uint64_t start_epoch = 1;
  std::chrono::microseconds epoch_interval{1000};
  TransactionLimits limits{.read_set = 100'000,
                           .write_set = 4096,
                           .pointer_set = 1024,
                           .page_version_set = 20'000,
                           .log_buffer = uint64_t{4} << 20};
  bool clock = true;  // false: only tick() advances the epoch
};

/// One worker: context, transaction and back-off. Process-local.
struct TestWorker {
  /// Zeroed and aligned like a `local` segment.
  std::unique_ptr<std::byte, decltype(&std::free)> local{nullptr, &std::free};
  std::unique_ptr<WorkerContext> context;
  std::unique_ptr<SnapshotReader> snapshots;  // set by use_snapshots
  std::unique_ptr<Transaction> transaction;
  Backoff backoff{1};

  template <typename Body>
  Status run(Body&& body) {
    return atolldb::run(*transaction, backoff, kMaxEpoch, body);
  }
};

class TestCluster {
 public:
  using Options = TestClusterOptions;

  TestCluster(uint32_t nodes, uint32_t workers_per_node, Options options = {})
      : options_(options), nodes_(nodes), workers_per_node_(workers_per_node) {
    layout_.worker_count = workers_per_node;
    layout_.node_count = nodes;
    control_fd_ = segment(sizeof(ControlSegment));
    for (uint32_t node = 0; node < nodes; ++node) {
      shared_fds_.push_back(segment(layout_.bytes()));
      pool_fds_.push_back(segment(options.pool_bytes));
      metrics_fds_.push_back(segment(MetricsSegment::bytes(layout_.slot_count())));
    }
    map(view_);
    for (uint32_t node = 0; node < nodes; ++node) {
      PagePool::format(view_.pool[node], options.pool_bytes);
    }
    view_.control->node_count = nodes;
    view_.control->epochs.current.store(options.start_epoch, std::memory_order_seq_cst);
    view_.control->epochs.oldest_begin.store(options.start_epoch, std::memory_order_seq_cst);
    view_.control->state.store(static_cast<uint32_t>(ClusterState::running),
                               std::memory_order_seq_cst);
    make_workers(view_, 0, nodes);
    if (options.clock) clock_ = std::jthread([this](std::stop_token stop) { keep_time(stop); });
  }

  ~TestCluster() {
    if (clock_.joinable()) {
      clock_.request_stop();
      clock_.join();
    }
    workers_.clear();
    unmap(view_);
    for (const auto* fds : {&shared_fds_, &pool_fds_, &metrics_fds_}) {
      for (const int fd : *fds) close(fd);
    }
    close(control_fd_);
  }
  TestCluster(const TestCluster&) = delete;
  TestCluster& operator=(const TestCluster&) = delete;

  ClusterView& view() { return view_; }
  uint32_t node_count() const { return nodes_; }
  uint32_t worker_count() const { return static_cast<uint32_t>(workers_.size()); }
  TestWorker& worker(uint32_t index) { return *workers_[index]; }
  PagePool& pool(uint32_t node) { return *pools_[node]; }
  WorkerMetrics& metrics(uint32_t node, uint32_t ordinal) {
    return metrics_[node]->worker(ordinal);
  }

  /// Makes all workers read snapshot pages through `cache`, which has one reader per worker.
  void use_snapshots(SnapshotCache& cache) {
    for (uint32_t i = 0; i < worker_count(); ++i) {
      worker(i).snapshots = std::make_unique<SnapshotReader>(cache, i);
      worker(i).context->use_snapshots(*worker(i).snapshots);
    }
  }

  PageDirectory& directory() { return directory_; }

  /// Lets transactions of all workers begin with these snapshots.
  void use_published(const PublishedSnapshots& published) {
    for (uint32_t i = 0; i < worker_count(); ++i) worker(i).context->use_published(published);
  }

  StorageControl& create(const std::string& name, StorageType type, uint32_t payload_bytes = 0,
                         uint64_t record_count = 0) {
    StorageControl& storage = view_.control->storage(next_storage_);
    storage.id = next_storage_++;
    storage.type = type;
    storage.payload_bytes = payload_bytes;
    storage.record_count = record_count;
    std::strncpy(storage.name, name.c_str(), kMaxStorageName);
    // Release pairs with the acquire load of find_storage: all fields are visible to the finder.
    storage.state.store(static_cast<uint32_t>(StorageState::ready), std::memory_order_release);
    return storage;
  }

  /// Advances the epoch by one, as the coordinator does on every tick.
  void tick() {
    EpochBlock& epochs = view_.control->epochs;
    const uint64_t now = epochs.current.load(std::memory_order_seq_cst) + 1;
    epochs.current.store(now, std::memory_order_seq_cst);
    uint64_t oldest = now;
    uint64_t closed = now - 1;
    for (uint32_t node = 0; node < nodes_; ++node) {
      for (uint32_t ordinal = 0; ordinal < layout_.slot_count(); ++ordinal) {
        WorkerSlot& slot = view_.shared[node]->slot(ordinal);
        oldest = std::min(oldest, slot.begin_epoch.load(std::memory_order_seq_cst));
        const uint64_t in_commit = slot.in_commit_epoch.load(std::memory_order_seq_cst);
        if (in_commit != 0) closed = std::min(closed, in_commit - 1);
      }
    }
    epochs.oldest_begin.store(oldest, std::memory_order_release);
    if (closed > epochs.durable.load(std::memory_order_relaxed)) {
      epochs.durable.store(closed, std::memory_order_release);
      epochs.settled.store(closed, std::memory_order_release);
    }
  }

  /// Runs `body(index, worker)` on one thread per worker.
  void run_threads(const std::function<void(uint32_t, TestWorker&)>& body) {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < worker_count(); ++i) {
      threads.emplace_back([&, i] {
        body(i, worker(i));
        worker(i).context->leave();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  /// Forks one process per node, which maps all segments at its own addresses and runs `body(index,
  /// worker)` on one thread per worker. `body` returns 0 for success. Returns the number of nodes
  /// that failed.
  int run_processes(const std::function<int(uint32_t, TestWorker&)>& body) {
    std::vector<pid_t> children;
    for (uint32_t node = 0; node < nodes_; ++node) {
      std::fflush(nullptr);
      const pid_t child = fork();
      CHECK(child >= 0);
      if (child == 0) _exit(run_node(node, body));
      children.push_back(child);
    }
    int failed = 0;
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++failed;
    }
    return failed;
  }

 private:
  static int segment(uint64_t bytes) {
    const int fd = memfd_create("atoll-test", MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(ftruncate(fd, static_cast<off_t>(bytes)) == 0);
    return fd;
  }

  template <typename T>
  T* map_segment(int fd, uint64_t bytes) {
    // Each mapping has its own address, so a raw pointer that leaks into a segment fails the test.
    void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(address != MAP_FAILED);
    mappings_.emplace_back(address, bytes);
    return static_cast<T*>(address);
  }

  void map(ClusterView& view) {
    view.control = map_segment<ControlSegment>(control_fd_, sizeof(ControlSegment));
    metrics_.clear();
    for (uint32_t node = 0; node < nodes_; ++node) {
      auto* shared = map_segment<NodeShared>(shared_fds_[node], layout_.bytes());
      if (shared->slot_count == 0) layout_.format(*shared);
      view.add_node(node, *shared, map_segment<std::byte>(pool_fds_[node], options_.pool_bytes));
      metrics_.push_back(map_segment<MetricsSegment>(metrics_fds_[node],
                                                     MetricsSegment::bytes(layout_.slot_count())));
    }
  }

  void unmap(ClusterView& view) {
    for (const auto& [address, bytes] : mappings_) munmap(address, bytes);
    mappings_.clear();
    view = ClusterView{};
  }

  void make_workers(const ClusterView& view, uint32_t first_node, uint32_t last_node) {
    workers_.clear();
    pools_.clear();
    for (uint32_t node = 0; node < nodes_; ++node) {
      pools_.push_back(std::make_unique<PagePool>(view, node));
    }
    for (uint32_t node = first_node; node < last_node; ++node) {
      for (uint32_t ordinal = 0; ordinal < workers_per_node_; ++ordinal) {
        auto worker = std::make_unique<TestWorker>();
        const uint64_t local_bytes = options_.limits.local_bytes();
        worker->local.reset(
            static_cast<std::byte*>(std::aligned_alloc(kLogBlockBytes, local_bytes)));
        std::memset(worker->local.get(), 0, local_bytes);
        worker->context = std::make_unique<WorkerContext>(view, *pools_[node], node, ordinal,
                                                          metrics_[node]->worker(ordinal),
                                                          options_.limits.write_set);
        worker->context->use_directory(&directory_);
        worker->transaction =
            std::make_unique<Transaction>(*worker->context, options_.limits, worker->local.get());
        worker->backoff = Backoff(node * 1000 + ordinal + 1);
        workers_.push_back(std::move(worker));
      }
    }
  }

  int run_node(uint32_t node, const std::function<int(uint32_t, TestWorker&)>& body) {
    // The parent's mappings stay in place, so the new ones get other addresses. The caches of the
    // parent's workers belong to the parent, so the child releases these workers without destroying
    // them.
    for (auto& worker : workers_) static_cast<void>(worker.release());
    for (auto& pool : pools_) static_cast<void>(pool.release());
    // The size differs in every child, so the addresses of later mappings differ, too.
    map_segment<std::byte>(control_fd_, (node + 1) * (uint64_t{1} << 21));
    static ClusterView child_view;
    map(child_view);
    make_workers(child_view, node, node + 1);
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < workers_per_node_; ++i) {
      threads.emplace_back([&, i] {
        if (body(node * workers_per_node_ + i, *workers_[i]) != 0) {
          failed.store(1, std::memory_order_relaxed);
        }
        workers_[i]->context->leave();
      });
    }
    for (std::thread& thread : threads) thread.join();
    workers_.clear();
    std::fflush(nullptr);
    return failed.load(std::memory_order_relaxed);
  }

  void keep_time(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      tick();
      std::this_thread::sleep_for(options_.epoch_interval);
    }
  }

  Options options_;
  uint32_t nodes_;
  uint32_t workers_per_node_;
  NodeSharedLayout layout_;
  int control_fd_ = -1;
  std::vector<int> shared_fds_;
  std::vector<int> pool_fds_;
  std::vector<int> metrics_fds_;
  std::vector<std::pair<void*, uint64_t>> mappings_;
  ClusterView view_;
  std::vector<MetricsSegment*> metrics_;
  PageDirectory directory_;
  std::vector<std::unique_ptr<PagePool>> pools_;
  std::vector<std::unique_ptr<TestWorker>> workers_;
  uint32_t next_storage_ = 1;
  std::jthread clock_;
};

}  // namespace atolldb::test
