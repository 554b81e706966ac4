// Oracles for dropping pages: workers change storages while snapshots are repeatedly taken and
// installed, and pages dropped. A body returns an error text, or an empty text if all is right.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/engine/install/drop_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test {

struct OracleTotals {
  std::atomic<uint64_t> snapshots{0};
  InstallReport report;
};

/// Composes and installs all settled commits again and again until no worker runs, and then once
/// more.
template <typename Warm>
std::string keep_installing(Warm& warm, const std::atomic<uint32_t>& running,
                            OracleTotals& totals) {
  for (bool is_last = false; !is_last;) {
    is_last = running.load(std::memory_order_acquire) == 0;
    if (is_last) {
      const uint64_t last =
          warm.cluster.view().control->epochs.current.load(std::memory_order_seq_cst);
      while (warm.settled() < last) std::this_thread::yield();
    }
    const uint64_t epoch = warm.log.complete(warm.settled());
    if (epoch <= warm.stage.epoch) {
      std::this_thread::yield();
      continue;
    }
    std::string problem = warm.snapshot(epoch);
    if (problem.empty()) problem = warm.install(totals.report);
    if (!problem.empty()) {
      // Ends every wait for more snapshots.
      totals.snapshots.store(~uint64_t{0}, std::memory_order_release);
      return problem;
    }
    totals.snapshots.fetch_add(1, std::memory_order_release);
  }
  return {};
}

/// Works on records in groups of four whose sum is zero. It transfers amounts within a group, by
/// increments or by reads and writes. Every read of a group must return the sum zero. The groups in
/// use advance, so that pages are constantly dropped and copied up.
class TransferWorker {
 public:
  static constexpr uint64_t kGroup = 4;
  static constexpr uint64_t kWindow = 12;  // groups in use

  TransferWorker(WarmArray& warm, uint32_t self, uint64_t seed_value)
      : warm_(warm),
        self_(self),
        random_(seed_value),
        groups_(warm.array.record_count() / kGroup) {}

  /// Runs until `last` snapshots have been installed.
  std::string run(const std::atomic<uint64_t>& snapshots, uint64_t last) {
    TestWorker& worker = warm_.cluster.worker(self_);
    std::string problem;
    for (uint64_t now = 0; now < last && problem.empty();) {
      now = snapshots.load(std::memory_order_acquire);
      // Sometimes uses an older group, whose pages may be dropped at the same time.
      const uint64_t first =
          now * 401 - (random_() % 16 == 0 ? std::min<uint64_t>(now, 3) * 401 : 0);
      group_ = (first + random_() % kWindow) % groups_;
      const uint64_t choice = random_() % 6;
      warm_.log.begin(self_, worker.context->current_epoch());
      const Status status = worker.run([&](Transaction& txn) {
        changes_.clear();
        problem.clear();
        if (choice < 2) return add(txn);
        if (choice == 2) return move(txn);
        if (choice == 3) return move_many(txn);
        return look(txn, choice == 4, problem);
      });
      if (status != Status::ok) problem = "a transaction: " + std::string(to_string(status));
      warm_.note(*worker.transaction, changes_);
    }
    warm_.log.end(self_);
    return problem;
  }

 private:
  uint64_t member(uint64_t which) const { return group_ + which * groups_; }

  Status apply(Transaction& txn, const WarmArray::Change& change) {
    changes_.push_back(change);
    return warm_.change(txn, change);
  }
  Status add(Transaction& txn) {
    const auto amount = static_cast<int64_t>(random_() % 100);
    const uint64_t from = random_() % kGroup;
    const Status status = apply(txn, {member(from), true, -amount});
    return status == Status::ok
               ? apply(txn, {member((from + 1 + random_() % (kGroup - 1)) % kGroup), true, amount})
               : status;
  }
  Status move(Transaction& txn) {
    const auto amount = static_cast<int64_t>(random_() % 100);
    int64_t from = 0;
    int64_t to = 0;
    Status status = warm_.get(txn, member(0), from);
    if (status == Status::ok) status = warm_.get(txn, member(2), to);
    if (status == Status::ok) status = apply(txn, {member(0), false, from - amount});
    return status == Status::ok ? apply(txn, {member(2), false, to + amount}) : status;
  }
  Status move_many(Transaction& txn) {
    const auto amount = static_cast<int64_t>(random_() % 100);
    const uint64_t indexes[2] = {member(1), member(3)};
    RecordRef refs[2];
    int64_t values[2] = {};
    Status status = warm_.array.find_many_for_update(txn, indexes, refs);
    for (size_t i = 0; i < 2 && status == Status::ok; ++i) {
      status = warm_.array.get(txn, refs[i], 0, sizeof(int64_t), &values[i]);
    }
    values[0] -= amount;
    values[1] += amount;
    for (size_t i = 0; i < 2 && status == Status::ok; ++i) {
      changes_.push_back({indexes[i], false, values[i]});
      status = warm_.array.update(txn, refs[i], indexes[i], 0, sizeof(int64_t), &values[i]);
    }
    return status;
  }
  Status look(Transaction& txn, bool many, std::string& problem) {
    int64_t sum = 0;
    if (many) {
      uint64_t indexes[kGroup];
      RecordRef refs[kGroup];
      for (uint64_t i = 0; i < kGroup; ++i) indexes[i] = member(i);
      Status status = warm_.array.find_many(txn, indexes, refs);
      for (uint64_t i = 0; i < kGroup && status == Status::ok; ++i) {
        int64_t value = 0;
        status = warm_.array.get(txn, refs[i], 0, sizeof value, &value);
        sum += value;
      }
      if (status != Status::ok) return status;
    } else {
      std::vector<std::byte> record(warm_.array.payload_bytes());
      for (uint64_t i = 0; i < kGroup; ++i) {
        ArrayCursor cursor(warm_.array, txn, member(i), member(i), i % 2 == 0);
        uint64_t index = 0;
        const Status status = cursor.next(index, record.data());
        if (status != Status::ok) return status;
        int64_t value = 0;
        std::memcpy(&value, record.data(), sizeof value);
        sum += value;
      }
    }
    if (sum != 0)
      problem = "group " + std::to_string(group_) + " sums up to " + std::to_string(sum);
    return Status::ok;
  }

  WarmArray& warm_;
  uint32_t self_;
  std::mt19937_64 random_;
  uint64_t groups_;
  uint64_t group_ = 0;
  std::vector<WarmArray::Change> changes_;
};

inline std::string arrays_while_pages_are_dropped(uint64_t records, uint32_t payload_bytes,
                                                  uint64_t snapshots) {
  const uint64_t seed_value = seed();
  WarmArray warm(2, true, records, payload_bytes);
  std::vector<std::string> problems(warm.cluster.worker_count());
  std::atomic<uint32_t> running{warm.writers()};
  OracleTotals totals;
  warm.cluster.run_threads([&](uint32_t index, TestWorker&) {
    if (index == warm.writers()) {
      problems[index] = keep_installing(warm, running, totals);
      return;
    }
    problems[index] =
        TransferWorker(warm, index, seed_value + index).run(totals.snapshots, snapshots);
    running.fetch_sub(1, std::memory_order_release);
  });
  for (const std::string& problem : problems) {
    if (!problem.empty()) return problem;
  }
  std::printf("%llu snapshots, %llu pages dropped, %llu busy\n",
              static_cast<unsigned long long>(totals.snapshots.load(std::memory_order_relaxed)),
              static_cast<unsigned long long>(totals.report.dropped),
              static_cast<unsigned long long>(totals.report.busy));
  if (warm.pages().leaves != 0) return "the last snapshot has left leaves";
  return reads_all(warm, 0, warm.values);
}

inline std::string heaps_while_pages_are_dropped(uint64_t snapshots) {
  const uint64_t seed_value = seed();
  WarmHeap warm(2, true);
  std::vector<std::string> problems(warm.cluster.worker_count());
  std::atomic<uint32_t> running{warm.writers()};
  OracleTotals totals;
  warm.cluster.run_threads([&](uint32_t index, TestWorker& worker) {
    if (index == warm.writers()) {
      problems[index] = keep_installing(warm, running, totals);
      return;
    }
    std::mt19937_64 random(seed_value + index);
    uint64_t transactions = 0;
    for (uint64_t now = 0; now < snapshots && problems[index].empty();) {
      now = totals.snapshots.load(std::memory_order_acquire);
      // Only a few appends per snapshot, because each scan reads all records.
      if (transactions++ == 20 * (now + 1)) {
        --transactions;
        warm.log.end(index);
        std::this_thread::yield();
        continue;
      }
      warm.log.begin(index, worker.context->current_epoch());
      const Status status = warm.append(index, 1 + random() % 8);
      if (status != Status::ok) problems[index] = "append: " + std::string(to_string(status));
      uint64_t found = 0;
      if (random() % 20 == 0 && problems[index].empty()) problems[index] = warm.scan(index, found);
    }
    warm.log.end(index);
    running.fetch_sub(1, std::memory_order_release);
  });
  for (const std::string& problem : problems) {
    if (!problem.empty()) return problem;
  }
  std::printf("%llu snapshots, %llu pages dropped\n",
              static_cast<unsigned long long>(totals.snapshots.load(std::memory_order_relaxed)),
              static_cast<unsigned long long>(totals.report.dropped));
  if (warm.pages() != warm.writers()) return "the last snapshot has left pages";
  uint64_t found = 0;
  const std::string problem = warm.scan(0, found);
  uint64_t total = 0;
  for (const auto& count : warm.appended) total += count.load(std::memory_order_relaxed);
  if (problem.empty() && found != total) return "the last scan found too many";
  return problem;
}

}  // namespace atolldb::test
