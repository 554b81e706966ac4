// Bodies that need real concurrency: a fault shows in some round, not in a given one. A body
// returns an error text, or an empty text if all is right.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "shared/sync/racy_copy.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// Four threads read, add one and write, on few records. No update may be lost.
inline std::string counters_sum_up(uint64_t transactions) {
  TestCluster cluster(2, 2);
  const Table table(Kind::array, cluster.create("counters", StorageType::array, 8, 4));
  std::atomic<uint64_t> failed{0};
  cluster.run_threads([&](uint32_t self, TestWorker& worker) {
    for (uint64_t i = 0; i < transactions; ++i) {
      const Status status = worker.run([&](Transaction& txn) {
        uint64_t value = 0;
        const Status read = table.get(txn, (self + i) % 4, value);
        return read == Status::ok ? table.put(txn, (self + i) % 4, value + 1) : read;
      });
      if (status != Status::ok) failed.fetch_add(1, std::memory_order_relaxed);
    }
  });
  uint64_t sum = 0;
  const Status status = cluster.worker(0).run([&](Transaction& txn) {
    sum = 0;
    Status one = Status::ok;
    for (uint64_t key = 0; key < 4 && one == Status::ok; ++key) {
      uint64_t value = 0;
      one = table.get(txn, key, value);
      sum += value;
    }
    return one;
  });
  Problem problem;
  problem.expect(status, Status::ok, "final read");
  problem.expect(failed.load(std::memory_order_relaxed) == 0, "a transaction failed");
  problem.expect(sum == 4 * transactions, "the counters sum up to " + std::to_string(sum) +
                                              ", not to " + std::to_string(4 * transactions));
  return problem.text();
}

/// Writers fill a record with one byte value. No procedure sees two different values in it, not
/// even in an attempt that would abort.
inline std::string records_are_never_torn(uint64_t transactions) {
  constexpr uint32_t kBytes = 2000;
  TestCluster cluster(2, 2);
  const Array array(cluster.create("wide", StorageType::array, kBytes, 1));
  std::atomic<uint64_t> torn{0};
  cluster.run_threads([&](uint32_t self, TestWorker& worker) {
    std::vector<unsigned char> bytes(kBytes);
    for (uint64_t i = 0; i < transactions; ++i) {
      const Status status = worker.run([&](Transaction& txn) {
        if (self % 2 == 0) {
          bytes.assign(kBytes, static_cast<unsigned char>(i * 2 + self));
          return array.update(txn, 0, 0, kBytes, bytes.data());
        }
        const Status read = array.get(txn, 0, bytes.data());
        if (read == Status::ok && bytes != std::vector<unsigned char>(kBytes, bytes[0])) {
          torn.fetch_add(1, std::memory_order_relaxed);
        }
        return read;
      });
      if (status != Status::ok) torn.fetch_add(1, std::memory_order_relaxed);
    }
  });
  const uint64_t count = torn.load(std::memory_order_relaxed);
  return count == 0 ? "" : std::to_string(count) + " torn reads";
}

/// A writer stops in the middle of a record. Readers wait until it continues.
inline std::string half_written_record_is_waited_for() {
  Stage stage;
  Problem problem;
  RecordRef ref;
  stage.commit_alone([&](Transaction& b) { return stage.array().find(b, 10, ref); });
  const Vid before = ref.record->load_acquire();
  ref.record->vid.store(before.with(Vid::kBeingWritten).word(), std::memory_order_release);
  const uint64_t half = 0xffffffff00000000u;
  const uint64_t whole = ~uint64_t{0};
  racy_write(ref.payload(), &half, sizeof(half));
  std::atomic<bool> started{false};
  std::atomic<bool> done{false};
  uint64_t value = 0;
  Status status = Status::procedure_failed;
  std::thread reader([&] {
    started.store(true, std::memory_order_release);
    status = stage.cluster().worker(0).run(
        [&](Transaction& txn) { return stage.array().get(txn, 10, value); });
    done.store(true, std::memory_order_release);
  });
  while (!started.load(std::memory_order_acquire)) std::this_thread::yield();
  // A reader that does not wait fails during these yields. A reader that waits passes, however long
  // they take.
  for (int i = 0; i < 2000 && !done.load(std::memory_order_acquire); ++i) {
    std::this_thread::yield();
  }
  racy_write(ref.payload(), &whole, sizeof(whole));
  ref.record->vid.store(Vid::make(before.epoch(), before.ordinal() + 1).word(),
                        std::memory_order_release);
  reader.join();
  problem.expect(status, Status::ok, "read");
  problem.expect(value == whole, "the reader saw half of a write");
  return problem.text();
}

}  // namespace atolldb::test
