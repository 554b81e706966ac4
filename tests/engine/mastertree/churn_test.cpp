// A queue in a Master-tree: inserts at one end and deletes at the other, a hundred times the
// capacity of the pool. Tombstones must be reclaimed as fast as they are made (R45, R46): the work
// per transaction stays constant, and the pages are freed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/format/tree_page.h"
#include "engine/mastertree/cursor.h"
#include "engine/mastertree/inspect.h"
#include "tests/support/seed.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kPoolBytes = uint64_t{2} << 20;
constexpr uint32_t kChurnBatch = 10;
constexpr uint64_t kQueueLength = 1000;

class Queue {
 public:
  /// Queues of one tree are ordered by `number`, which is below 256. All keys begin with `prefix`.
  explicit Queue(StorageControl& storage, uint64_t number = 0, std::string prefix = {})
      : tree_(storage),
        prefix_(std::move(prefix)),
        begin_(number << 40),
        head_(begin_),
        tail_(begin_) {}

  void push(TestWorker& worker, uint32_t count) {
    const Status status = worker.run([&](Transaction& txn) {
      for (uint32_t i = 0; i < count; ++i) {
        const std::string text = key_of(tail_ + i);
        const Status inserted = tree_.insert(txn, bytes_of(text), ordered_key(tail_ + i));
        if (inserted != Status::ok) return inserted;
      }
      return Status::ok;
    });
    ASSERT_EQ(status, Status::ok) << to_string(status);
    tail_ += count;
  }

  void pop(TestWorker& worker, uint32_t count) {
    uint64_t expected = 0;
    const Status status = worker.run([&](Transaction& txn) {
      expected = head_;
      const std::string begin = key_of(begin_);
      MasterTreeCursor cursor(tree_, txn, ScanRange{.low = bytes_of(begin), .has_low = true}, true);
      for (uint32_t i = 0; i < count; ++i) {
        Status one = cursor.next();
        if (one != Status::ok) return one;
        const std::string key = key_of(expected++);
        if (!std::ranges::equal(bytes_of(key), cursor.key())) return Status::user_abort;
        one = tree_.erase(txn, cursor.ref(), cursor.key());
        if (one != Status::ok) return one;
      }
      return Status::ok;
    });
    ASSERT_EQ(status, Status::ok) << to_string(status);
    head_ = expected;
  }

  uint64_t length() const { return tail_ - head_; }

 private:
  static Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
  std::string key_of(uint64_t number) const {
    const auto bytes = ordered_key(number);
    return prefix_ + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  MasterTree tree_;
  std::string prefix_;
  uint64_t begin_;
  uint64_t head_;
  uint64_t tail_;
};

/// Lets the grace period pass and processes all hints, as idle workers do.
void settle(TestCluster& cluster) {
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 6; ++i) cluster.tick();
    for (uint32_t i = 0; i < cluster.worker_count(); ++i) {
      WorkerContext& context = *cluster.worker(i).context;
      context.enter();
      run_hints(context);
      context.leave();
      context.pages().recycle();
      context.pages().flush();
    }
  }
  for (uint32_t node = 0; node < cluster.node_count(); ++node) {
    cluster.pool(node).collect_returns();
  }
}

uint64_t free_pages(TestCluster& cluster) {
  uint64_t pages = 0;
  for (uint32_t node = 0; node < cluster.node_count(); ++node) {
    pages += cluster.pool(node).free_count();
  }
  return pages;
}

uint64_t accesses(TestCluster& cluster) {
  uint64_t total = 0;
  for (uint32_t node = 0; node < cluster.node_count(); ++node) {
    total += cluster.metrics(node, 0).local_accesses.get() +
             cluster.metrics(node, 0).remote_accesses.get();
  }
  return total;
}

/// Inserts and deletes records of a queue. `pools`: number of these records, in multiples of the
/// capacity of the page pools.
void churn(uint32_t nodes, uint64_t pools, const std::string& prefix = {}) {
  TestCluster cluster(nodes, 1, {.pool_bytes = kPoolBytes, .clock = false});
  StorageControl& storage = cluster.create("queue", StorageType::mastertree, 8);
  Queue queue(storage, 0, prefix);
  queue.push(cluster.worker(0), 1);
  queue.pop(cluster.worker(0), 1);
  settle(cluster);
  const uint64_t free_before = free_pages(cluster);

  // A full page holds about 90 such records.
  const uint64_t pool_records = nodes * (kPoolBytes / kPageBytes) * 90;
  const uint64_t transactions = pools * pool_records / kChurnBatch;
  for (uint64_t i = 0; i < kQueueLength / kChurnBatch; ++i)
    queue.push(cluster.worker(0), kChurnBatch);
  uint64_t work[10] = {};
  double seconds[10] = {};
  for (uint64_t tenth = 0; tenth < 10; ++tenth) {
    const uint64_t before = accesses(cluster);
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < transactions / 10; ++i) {
      queue.push(cluster.worker(0), kChurnBatch);
      queue.pop(cluster.worker(nodes - 1), kChurnBatch);
      if (i % 8 == 0) cluster.tick();
      ASSERT_FALSE(testing::Test::HasFailure());
    }
    seconds[tenth] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    work[tenth] = accesses(cluster) - before;
  }
  std::printf("%u nodes: first tenth %.3f s, last tenth %.3f s; page accesses %llu and %llu\n",
              nodes, seconds[0], seconds[9], static_cast<unsigned long long>(work[0]),
              static_cast<unsigned long long>(work[9]));
  // Compares page accesses instead of time. The last tenth of the run must reach at least 90 % of
  // the speed of the first tenth.
  EXPECT_LE(static_cast<double>(work[9]) * 0.9, static_cast<double>(work[0]));

  while (queue.length() != 0) {
    queue.pop(cluster.worker(nodes - 1), kChurnBatch);
    cluster.tick();
  }
  // Each call of `settle` removes some 50 layers, one after the other, from the lowest one upwards.
  for (size_t layers = 0; layers <= prefix.size() / 8; layers += 50) settle(cluster);
  TreeStatistics statistics;
  EXPECT_EQ(check_tree(cluster.view(), storage, statistics), "");
  EXPECT_EQ(statistics.records, 0u);
  std::printf("free pages %llu before, %llu after\n", static_cast<unsigned long long>(free_before),
              static_cast<unsigned long long>(free_pages(cluster)));
  EXPECT_EQ(free_pages(cluster), free_before);
}

/// Number of levels of the tree. REQUIRES: the tree has a single layer.
uint32_t levels(TestCluster& cluster, StorageControl& storage) {
  const VolatilePointer root = storage.root.load_acquire();
  return tree_page(cluster.view().resolve(root.thawed()))->header.level + 1u;
}

// Merging includes parents whose children are all empty. Otherwise the head of a queue would leave
// behind every parent that it has passed, with some empty pages. Each search for the head would
// then visit all these parents.
TEST(MasterTreeChurn, QueuesThatGrowLeaveNoTrailOfEmptyPages) {
  TestCluster cluster(1, 1, {.pool_bytes = uint64_t{64} << 20, .clock = false});
  StorageControl& storage = cluster.create("queues", StorageType::mastertree, 8);
  std::vector<Queue> queues;
  for (uint64_t number = 0; number < 2; ++number) queues.emplace_back(storage, number);
  const uint64_t transactions = rounds(60'000, 300'000);
  for (uint64_t i = 0; i < transactions; ++i) {
    for (Queue& queue : queues) {
      queue.push(cluster.worker(0), kChurnBatch + i % 2);
      queue.pop(cluster.worker(0), kChurnBatch);
    }
    if (i % 8 == 0) cluster.tick();
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  settle(cluster);
  // On each level, a search visits fewer empty pages than a merge run has. It may visit three more
  // pages: the last page of the previous queue, the page that it finds, and the next page, which
  // may have the head.
  const uint32_t depth = levels(cluster, storage);
  const uint64_t most = uint64_t{depth} * (kMinMergeRun - 1) + 3;
  for (Queue& queue : queues) {
    const uint64_t before = accesses(cluster);
    queue.pop(cluster.worker(0), 1);
    const uint64_t visited = accesses(cluster) - before;
    std::printf("%llu pages on the way to the head, of %llu\n",
                static_cast<unsigned long long>(visited),
                static_cast<unsigned long long>(most * depth));
    EXPECT_LE(visited, most * depth);
  }
}

uint64_t usual_pools() {
#ifdef ATOLL_DCHECK
  return rounds(10, 100);
#else
  return rounds(100, 400);
#endif
}

TEST(MasterTreeChurn, AQueueOfAHundredPoolsOnOneNodeRunsAsFastAtTheEnd) { churn(1, usual_pools()); }

TEST(MasterTreeChurn, AQueueFilledByOneNodeAndEmptiedByAnotherGivesItsPagesBack) {
  churn(2, usual_pools());
}

// Layers of every depth are reclaimed, however long the common prefix of the keys is. This test has
// eleven layers. The next test has as many layers as the longest key.
TEST(MasterTreeChurn, AQueueBehindALongPrefixGivesItsPagesBack) {
  churn(1, rounds(5, 50), std::string(80, 'p'));
}

TEST(MasterTreeChurn, AQueueBehindTheLongestPrefixGivesItsPagesBack) {
  churn(1, rounds(2, 20), std::string(MasterTree::kMaxKeyBytes - 8, 'p'));
}

}  // namespace
}  // namespace atolldb::test
