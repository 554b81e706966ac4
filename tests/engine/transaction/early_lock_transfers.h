// Transfers between few accounts by many workers, whose retries take early locks. Some transfers
// also insert into the tree of the accounts, so that its pages are locked and split meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <random>
#include <string>

#include "tests/engine/transaction/anomaly_stage.h"
#include "tests/support/seed.h"

namespace atolldb::test {

struct TransferOptions {
  Kind kind = Kind::array;
  uint32_t workers = 4;
  uint64_t transfers = 1000;  // per worker
  uint64_t accounts = 5;
  bool inserts = false;  // only into a tree
  uint64_t seed = 1;
};

/// One worker's transfers. Each one reads three accounts in a random order, and moves an amount
/// between two of them.
class Transfers {
 public:
  Transfers(const TransferOptions& options, const Table& table, uint32_t worker)
      : options_(options), table_(table), random_(options.seed * 1000 + worker), worker_(worker) {}

  /// Returns an error text, or an empty text.
  std::string run(TestWorker& worker) {
    for (uint64_t i = 0; i < options_.transfers; ++i) {
      choose();
      const Status status = worker.run([&](Transaction& txn) { return body(txn, i); });
      if (status != Status::ok) return "a transfer ends with " + std::string(to_string(status));
    }
    return "";
  }

 private:
  /// Chooses three different accounts.
  void choose() {
    const uint64_t accounts = options_.accounts;
    chosen_[0] = random_() % accounts;
    do chosen_[1] = random_() % accounts;
    while (chosen_[1] == chosen_[0]);
    do chosen_[2] = random_() % accounts;
    while (chosen_[2] == chosen_[0] || chosen_[2] == chosen_[1]);
    amount_ = random_() % 100;
  }
  Status body(Transaction& txn, uint64_t number) {
    std::array<uint64_t, 3> values{};
    for (size_t i = 0; i < chosen_.size(); ++i) {
      const Status status = table_.get(txn, chosen_[i], values[i]);
      if (status != Status::ok) return status;
      // The other workers get a turn, so that transactions meet on any number of CPUs.
      if (i == 0 && random_() % 16 == 0) sched_yield();
    }
    if (options_.inserts && number % 8 == 0) {
      const uint64_t key = 1000 + (number * 97 + worker_) * 64 % 100'000;
      const Status status = table_.put(txn, key, 0);
      if (status != Status::ok) return status;
    }
    const Status status = table_.put(txn, chosen_[0], values[0] - amount_);
    return status == Status::ok ? table_.put(txn, chosen_[1], values[1] + amount_) : status;
  }

  TransferOptions options_;
  Table table_;
  std::mt19937_64 random_;
  uint32_t worker_;
  std::array<uint64_t, 3> chosen_{};
  uint64_t amount_ = 0;
};

/// All transfers end, and the sum of all accounts stays 0. Sets `taken` to the number of early
/// locks.
inline std::string transfers_with_early_locks(const TransferOptions& options, uint64_t& taken) {
  TestCluster cluster(1, options.workers);
  StorageControl& storage =
      options.kind == Kind::array
          ? cluster.create("accounts", StorageType::array, 8, options.accounts)
          : cluster.create("accounts", StorageType::mastertree, 8);
  const Table table(options.kind, storage);
  const Status loaded = cluster.worker(0).run([&](Transaction& txn) {
    Status status = Status::ok;
    for (uint64_t i = 0; i < options.accounts && status == Status::ok; ++i) {
      status = table.put(txn, i, 0);
    }
    return status;
  });
  if (loaded != Status::ok) return "the accounts cannot be loaded";
  cluster.worker(0).context->leave();
  std::vector<std::string> problems(options.workers);
  cluster.run_threads([&](uint32_t index, TestWorker& worker) {
    worker.context->hot_records().use({.lock_from_failures = 1});
    problems[index] = Transfers(options, table, index).run(worker);
  });
  taken = 0;
  for (uint32_t i = 0; i < options.workers; ++i) {
    if (!problems[i].empty()) return problems[i];
    taken += cluster.metrics(0, i).early_locks.get();
  }
  uint64_t sum = 0;
  const Status read = cluster.worker(0).run([&](Transaction& txn) {
    Status status = Status::ok;
    sum = 0;
    for (uint64_t i = 0; i < options.accounts && status == Status::ok; ++i) {
      uint64_t value = 0;
      status = table.get(txn, i, value);
      sum += value;
    }
    return status;
  });
  if (read != Status::ok) return "the accounts cannot be read";
  return sum == 0 ? "" : "the sum is " + std::to_string(sum);
}

}  // namespace atolldb::test
