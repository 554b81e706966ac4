// Transfers between records of a tree with a delta tree, while snapshots are installed and the
// delta tree is drained (R76 to R80).
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/mastertree/cursor.h"
#include "tests/engine/install/cold_tree.h"
#include "tests/engine/mastertree/cursor_reader.h"
#include "tests/support/seed.h"

namespace atolldb::test {

/// Works on groups of records whose sum is zero. A record that does not exist counts as zero. All
/// workers change the same records, so each committed sum tests serializability. The groups
/// in use change, so that other pages have no new changes and can be dropped.
class TreeTransfers {
 public:
  // Many more pages than a round changes, so that some are always in a snapshot only.
  static constexpr uint64_t kGroups = kMaxBorderSlots < 10 ? 400 : 3000;
  static constexpr uint64_t kGroup = 4;
  static constexpr uint64_t kWindow = kGroups / 10;  // groups in use

  TreeTransfers(const MasterTree& tree, uint64_t seed_value) : tree_(tree), random_(seed_value) {}

  /// Returns an error text if a committed transaction has seen a wrong sum.
  std::string run(TestWorker& worker, uint64_t transactions, uint64_t first_group) {
    for (uint64_t i = 0; i < transactions; ++i) {
      const uint64_t seed_value = random_();
      int64_t sum = 0;
      std::string how;
      const Status status = worker.run([&](Transaction& txn) {
        std::mt19937_64 choose(seed_value);
        const uint64_t group = (first_group + choose() % kWindow) % kGroups;
        const bool scans = choose() % 2 == 0;
        const bool forward = choose() % 2 == 0;
        const bool begins_blindly = choose() % 4 == 0;
        const bool reads = !begins_blindly || choose() % 2 == 0;
        sum = 0;
        how = !scans ? "look-ups" : forward ? "a scan forward" : "a scan backward";
        if (begins_blindly) how += " after blind writes";
        Status one = begins_blindly ? write_blindly(txn, group, choose) : Status::ok;
        if (one == Status::ok && reads) {
          one = scans ? add_by_scan(txn, group, sum, forward) : add_by_look_up(txn, group, sum);
        }
        if (one == Status::ok && reads && choose() % 3 != 0) one = transfer(txn, group, choose);
        return one == Status::ok && choose() % 8 == 0 ? Status::user_abort : one;
      });
      if (status != Status::ok && status != Status::user_abort)
        return "a transfer ended with " + std::string(to_string(status));
      if (sum != 0) return "a sum by " + how + " is " + std::to_string(sum);
    }
    return {};
  }

  static std::string key(uint64_t group, uint64_t record) {
    return big_endian(group * kGroup + record);
  }

 private:
  Status get(Transaction& txn, const std::string& key, int64_t& value) const {
    uint32_t length = 0;
    const Status status = tree_.get(txn, bytes_of(key), &value, sizeof value, length);
    if (status != Status::not_found) return status;
    // The call may have copied a value before it found the record deleted.
    value = 0;
    return Status::ok;
  }

  Status add_by_look_up(Transaction& txn, uint64_t group, int64_t& sum) const {
    for (uint64_t i = 0; i < kGroup; ++i) {
      int64_t value = 0;
      const Status status = get(txn, key(group, i), value);
      if (status != Status::ok) return status;
      sum += value;
    }
    return Status::ok;
  }

  Status add_by_scan(Transaction& txn, uint64_t group, int64_t& sum, bool forward) const {
    const std::string low = key(group, 0);
    const std::string high = key(group + 1, 0);
    MasterTreeCursor cursor(
        tree_, txn,
        {.low = bytes_of(low), .has_low = true, .high = bytes_of(high), .has_high = true}, forward);
    CursorReader reader(cursor, group % 5);
    Status status = reader.next();
    for (; status == Status::ok; status = reader.next()) {
      int64_t value = 0;
      std::memcpy(&value, reader.payload().data(), std::min(sizeof value, reader.payload().size()));
      sum += value;
    }
    return status == Status::end_of_scan ? Status::ok : status;
  }

  Status add_to(Transaction& txn, const std::string& key, int64_t amount, uint64_t how) const {
    Status status = Status::not_found;
    if (how == 3) return tree_.add(txn, bytes_of(key), 0, IncrementType::i64, &amount);
    if (how == 0) status = tree_.increment(txn, bytes_of(key), 0, IncrementType::i64, &amount);
    if (status != Status::not_found) return status;
    int64_t value = 0;
    status = get(txn, key, value);
    if (status != Status::ok) return status;
    value += amount;
    const Bytes bytes = std::as_bytes(std::span(&value, 1));
    if (how == 1) {
      status = tree_.update_range(txn, bytes_of(key), 0, bytes);
      if (status != Status::not_found) return status;
    }
    return tree_.upsert(txn, bytes_of(key), bytes);
  }

  /// Writes all records of the group without a read. The new sum is zero, too (R82).
  Status write_blindly(Transaction& txn, uint64_t group, std::mt19937_64& choose) const {
    int64_t rest = 0;
    for (uint64_t i = 0; i < kGroup; ++i) {
      const int64_t value = i + 1 == kGroup ? -rest : static_cast<int64_t>(choose() % 100);
      rest += value;
      const Status status =
          tree_.upsert(txn, bytes_of(key(group, i)), std::as_bytes(std::span(&value, 1)));
      if (status != Status::ok) return status;
    }
    return Status::ok;
  }

  Status transfer(Transaction& txn, uint64_t group, std::mt19937_64& choose) const {
    const uint64_t from = choose() % kGroup;
    const uint64_t to = (from + 1 + choose() % (kGroup - 1)) % kGroup;
    int64_t amount = static_cast<int64_t>(choose() % 100);
    const bool erases = choose() % 4 == 0;
    Status status = Status::ok;
    if (erases) {
      status = get(txn, key(group, from), amount);
      if (status == Status::ok) status = tree_.erase(txn, bytes_of(key(group, from)));
      if (status == Status::not_found) status = Status::ok;
    } else {
      status = add_to(txn, key(group, from), -amount, choose() % 4);
    }
    return status == Status::ok ? add_to(txn, key(group, to), amount, choose() % 4) : status;
  }

  MasterTree tree_;
  std::mt19937_64 random_;
};

/// Returns an error text, or an empty text if all is right.
inline std::string delta_transfers(uint32_t workers, uint64_t rounds, uint64_t transactions) {
  WarmTree warm(workers);
  const MasterTree tree(warm.storage);
  std::mt19937_64 random(seed());
  std::vector<TreeTransfers> transfers;
  for (uint32_t i = 0; i < workers; ++i) transfers.emplace_back(tree, random());
  OracleWorker::Model before;
  std::vector<GleanedLog> logs;
  uint64_t epoch = 0;
  uint64_t delta_records = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    std::string unsound;
    const uint64_t cut = random() % (TreeTransfers::kGroups * TreeTransfers::kGroup);
    const bool drops = random() % 4 != 0;
    warm.storage.uses_delta.store(random() % 8 != 0, std::memory_order_relaxed);
    std::thread gleaner([&] {
      if (epoch == 0) return;
      unsound = warm.take(std::move(logs), epoch, cut);
      if (unsound.empty()) unsound = warm.install(drops ? drop_all : keep_all);
      if (unsound.empty()) unsound = warm.close_unneeded();
    });
    std::vector<std::string> problems(workers);
    const uint64_t first_group = random() % TreeTransfers::kGroups;
    warm.cluster.run_threads([&](uint32_t index, TestWorker& worker) {
      problems[index] = transfers[index].run(worker, transactions, first_group);
    });
    gleaner.join();
    for (const std::string& problem : problems) {
      if (!problem.empty()) return problem + " in round " + std::to_string(round);
    }
    if (!unsound.empty()) return unsound + " in round " + std::to_string(round);
    TreeStatistics statistics;
    unsound = warm.check(statistics);
    if (!unsound.empty()) return unsound + " after round " + std::to_string(round);
    delta_records += statistics.delta_records;
    epoch = warm.settle();
    OracleWorker::Model now;
    const Status read = warm.cluster.worker(0).run([&](Transaction& txn) {
      now.clear();
      MasterTreeCursor cursor(tree, txn, {}, true);
      Status one = cursor.next();
      for (; one == Status::ok; one = cursor.next()) {
        std::string value(8, '\0');
        one = cursor.get(value.data(), 8);
        if (one != Status::ok) return one;
        now.emplace(std::string(reinterpret_cast<const char*>(cursor.key().data()), 8), value);
      }
      return one == Status::end_of_scan ? Status::ok : one;
    });
    warm.cluster.worker(0).context->leave();
    if (read != Status::ok) return "the scan ended with " + std::string(to_string(read));
    logs = changes_between(before, now, epoch);
    before = std::move(now);
  }
  if (delta_records == 0 || warm.totals.drained == 0) return "the delta tree was hardly used";
  return {};
}

}  // namespace atolldb::test
