// Sequential storages: appends, scans, user aborts, limits and concurrent appenders.
#include "engine/sequential/sequential.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/transaction/storage_ops.h"
#include "tests/support/seed.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::vector<std::string> scan(TestWorker& worker, const Sequential& heap) {
  std::vector<std::string> found;
  const Status status = worker.run([&](Transaction& txn) {
    found.clear();
    SequentialCursor cursor(heap, txn);
    for (;;) {
      const Status one = cursor.next();
      if (one == Status::end_of_scan) return Status::ok;
      if (one != Status::ok) return one;
      found.emplace_back(reinterpret_cast<const char*>(cursor.payload().data()),
                         cursor.payload().size());
    }
  });
  EXPECT_EQ(status, Status::ok);
  return found;
}

TEST(Sequential, AScanSeesAppendsInTheOrderOfEpochsAndOfTheWorker) {
  TestCluster cluster(2, 1, {.clock = false});
  const Sequential heap(cluster.create("heap", StorageType::sequential));
  std::vector<std::string> expected;
  for (int i = 0; i < 300; ++i) {
    const std::string text = "record " + std::to_string(i);
    expected.push_back(text);
    TestWorker& worker = cluster.worker(static_cast<uint32_t>(i % 2));
    EXPECT_EQ(worker.run([&](Transaction& txn) { return heap.append(txn, bytes_of(text)); }),
              Status::ok);
    cluster.tick();
  }
  EXPECT_EQ(scan(cluster.worker(0), heap), expected);
}

TEST(Sequential, AScanOfAnEmptyHeapConflictsWithTheFirstAppend) {
  TestCluster cluster(2, 1, {.clock = false});
  const Sequential heap(cluster.create("heap", StorageType::sequential));
  Transaction& reader = *cluster.worker(0).transaction;
  ASSERT_EQ(reader.begin(), Status::ok);
  SequentialCursor cursor(heap, reader);
  EXPECT_EQ(cursor.next(), Status::end_of_scan);
  ASSERT_EQ(cluster.worker(1).run([&](Transaction& txn) { return heap.append(txn, {}); }),
            Status::ok);
  EXPECT_EQ(reader.commit(), Status::pointer_installed);
}

TEST(Sequential, AScanConflictsWithAnAppendToAListItHasSeen) {
  TestCluster cluster(2, 1, {.clock = false});
  const Sequential heap(cluster.create("heap", StorageType::sequential));
  auto append = [&](uint32_t worker) {
    return cluster.worker(worker).run([&](Transaction& txn) { return heap.append(txn, {}); });
  };
  ASSERT_EQ(append(1), Status::ok);
  Transaction& reader = *cluster.worker(0).transaction;
  ASSERT_EQ(reader.begin(), Status::ok);
  SequentialCursor cursor(heap, reader);
  EXPECT_EQ(cursor.next(), Status::ok);
  EXPECT_EQ(cursor.next(), Status::end_of_scan);
  ASSERT_EQ(append(1), Status::ok);
  EXPECT_EQ(reader.commit(), Status::phantom);
}

TEST(Sequential, AppendsDoNotConflictAndAnOwnScanSeesThemLast) {
  TestCluster cluster(2, 1, {.clock = false});
  const Sequential heap(cluster.create("heap", StorageType::sequential));
  Transaction& one = *cluster.worker(0).transaction;
  Transaction& two = *cluster.worker(1).transaction;
  ASSERT_EQ(one.begin(), Status::ok);
  ASSERT_EQ(two.begin(), Status::ok);
  ASSERT_EQ(heap.append(one, bytes_of("one")), Status::ok);
  ASSERT_EQ(heap.append(two, bytes_of("two")), Status::ok);
  EXPECT_EQ(two.commit(), Status::ok);
  EXPECT_EQ(one.commit(), Status::ok);

  ASSERT_EQ(one.begin(), Status::ok);
  ASSERT_EQ(heap.append(one, bytes_of("own")), Status::ok);
  SequentialCursor cursor(heap, one);
  std::string last;
  int count = 0;
  while (cursor.next() == Status::ok) {
    last.assign(reinterpret_cast<const char*>(cursor.payload().data()), cursor.payload().size());
    ++count;
  }
  EXPECT_EQ(count, 3);
  EXPECT_EQ(last, "own");
  EXPECT_EQ(one.commit(), Status::ok) << "an own append does not make the own scan a phantom";
}

TEST(Sequential, AnAbortedAppendLeavesNothing) {
  TestCluster cluster(1, 1, {.clock = false});
  const Sequential heap(cluster.create("heap", StorageType::sequential));
  const Status status = cluster.worker(0).run([&](Transaction& txn) {
    const Status appended = heap.append(txn, bytes_of("gone"));
    return appended == Status::ok ? Status::user_abort : appended;
  });
  EXPECT_EQ(status, Status::user_abort);
  EXPECT_TRUE(scan(cluster.worker(0), heap).empty());
}

/// Regression: a user abort took pages for a new list, although no pages were reserved for the
/// list.
TEST(Sequential, AUserAbortTakesNoPages) {
  TestClusterOptions options{.clock = false};
  options.pool_bytes = uint64_t{4} << 20;
  TestCluster cluster(2, 1, options);
  StorageControl& storage = cluster.create("heap", StorageType::sequential);
  const Sequential heap(storage);
  ASSERT_EQ(cluster.worker(1).run([&](Transaction& b) { return heap.append(b, bytes_of("x")); }),
            Status::ok);
  Transaction& a = *cluster.worker(0).transaction;
  ASSERT_EQ(a.begin(), Status::ok);
  SequentialCursor cursor(heap, a);
  ASSERT_EQ(cursor.next(), Status::ok);
  ASSERT_EQ(heap.append(a, bytes_of("y")), Status::ok);
  // Another worker's append is under way. The user abort verifies the list of its scan again, and
  // checks whether the append is its own.
  WorkerContext& other = *cluster.worker(1).context;
  begin_append(other, storage);
  while (cluster.worker(0).context->pages().take() != nullptr) {
  }
  EXPECT_NE(a.commit_user_abort(), Status::user_abort);
  cancel_append(other, storage);
}

TEST(Sequential, LimitsHoldAtAndPastTheirValue) {
  TestCluster cluster(1, 1, {.clock = false});
  const Sequential heap(cluster.create("heap", StorageType::sequential));
  Transaction& txn = *cluster.worker(0).transaction;
  const std::string longest(Sequential::kMaxPayloadBytes, 'x');
  ASSERT_EQ(txn.begin(), Status::ok);
  for (uint32_t i = 0; i < Transaction::kMaxAppends; ++i) {
    ASSERT_EQ(heap.append(txn, bytes_of(longest)), Status::ok);
  }
  EXPECT_EQ(heap.append(txn, bytes_of(longest + "x")), Status::payload_too_long);
  EXPECT_EQ(txn.commit(), Status::ok);
  EXPECT_EQ(scan(cluster.worker(0), heap).size(), Transaction::kMaxAppends);
  ASSERT_EQ(txn.begin(), Status::ok);
  for (uint32_t i = 0; i < Transaction::kMaxAppends; ++i) {
    ASSERT_EQ(heap.append(txn, {}), Status::ok);
  }
  EXPECT_EQ(heap.append(txn, {}), Status::transaction_too_large);
  EXPECT_EQ(txn.commit(), Status::transaction_too_large) << "a part of it must not commit";
  EXPECT_EQ(scan(cluster.worker(0), heap).size(), Transaction::kMaxAppends);
}

TEST(Sequential, DroppingItGivesEveryPageBack) {
  TestCluster cluster(1, 1, {.clock = false});
  StorageControl& storage = cluster.create("heap", StorageType::sequential);
  TestWorker& worker = cluster.worker(0);
  const uint64_t before = cluster.pool(0).free_count();
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(worker.run([&](Transaction& txn) {
      return Sequential(storage).append(txn, bytes_of("0123456789abcdef"));
    }),
              Status::ok);
  }
  release_sequential(*worker.context, storage);
  worker.context->leave();
  cluster.tick();
  cluster.tick();
  worker.context->pages().recycle();
  worker.context->pages().flush();
  EXPECT_EQ(cluster.pool(0).free_count(), before);
}

/// Appenders write numbered pairs, one pair per transaction. Scanners must see every list without
/// gaps, and every pair whole.
void pairs_stay_whole(uint32_t nodes, uint32_t workers_per_node, uint64_t count) {
  seed();
  TestCluster cluster(nodes, workers_per_node);
  const Sequential heap(cluster.create("heap", StorageType::sequential));
  cluster.run_threads([&](uint32_t index, TestWorker& worker) {
    if (index == 0) {
      for (uint64_t round = 0; round < count / 20; ++round) {
        std::map<char, std::vector<std::string>> lists;
        for (const std::string& text : scan(worker, heap)) lists[text[0]].push_back(text);
        for (const auto& [owner, list] : lists) {
          EXPECT_EQ(list.size() % 2, 0u) << "half a transaction of worker " << owner;
          for (size_t i = 0; i < list.size(); ++i) {
            EXPECT_EQ(list[i].substr(1), std::to_string(i)) << "a gap in list " << owner;
          }
        }
      }
      return;
    }
    for (uint64_t i = 0; i < count; i += 2) {
      const Status status = worker.run([&](Transaction& txn) {
        const char owner = static_cast<char>('A' + index);
        const Status first = heap.append(txn, bytes_of(owner + std::to_string(i)));
        if (first != Status::ok) return first;
        return heap.append(txn, bytes_of(owner + std::to_string(i + 1)));
      });
      EXPECT_EQ(status, Status::ok);
    }
  });
}

TEST(Sequential, ConcurrentScansSeeWholeTransactionsWithoutGaps) {
  pairs_stay_whole(2, 2, rounds(400, 4000));
}

}  // namespace
}  // namespace atolldb::test
