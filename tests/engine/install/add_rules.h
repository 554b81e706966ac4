// Bodies of tests of additions that read nothing (R83). A body returns an error text, or an empty
// text if all is right.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/mastertree/cursor.h"
#include "tests/engine/install/open_record_rules.h"
#include "tests/engine/mastertree/cursor_reader.h"
#include "tests/support/seed.h"

namespace atolldb::test {

/// What an addition of `amount` makes of a payload.
inline std::string with_sum(std::string payload, int64_t amount, uint32_t offset = 0) {
  if (payload.size() < offset + sizeof amount) payload.resize(offset + sizeof amount, '\0');
  uint64_t number = 0;
  std::memcpy(&number, payload.data() + offset, sizeof number);
  number += static_cast<uint64_t>(amount);
  std::memcpy(payload.data() + offset, &number, sizeof number);
  return payload;
}

/// A cold tree whose workers may add to records without a read.
class AddTree : public ColdTree {
 public:
  AddTree() : ColdTree(2) {}

  std::string prepare_window() {
    std::string problem = prepare();
    if (problem.empty()) open_window();
    return problem;
  }
  /// Waits until workers may add blindly to the records of the newest snapshot.
  void open_window() {
    const EpochBlock& epochs = warm.cluster.view().control->epochs;
    for (uint32_t i = 0; i < workers(); ++i) {
      AddWindow& window = warm.cluster.worker(i).context->add_window();
      const auto is_open = [&] {
        return window.is_open(warm.stage.snapshot, epochs.current.load(std::memory_order_acquire));
      };
      while (!is_open()) std::this_thread::yield();
    }
  }
  Status add(uint32_t worker, uint64_t key, int64_t amount, uint32_t offset = 0) {
    return warm.cluster.worker(worker).run(
        [&](Transaction& txn) { return add_in(txn, key, amount, offset); });
  }
  /// Replaces the record without a read.
  Status write_blindly(uint32_t worker, uint64_t key) {
    return warm.cluster.worker(worker).run([&](Transaction& txn) {
      return tree.upsert(txn, bytes_of(big_endian(key)), bytes_of("mine"));
    });
  }
  Status add_in(Transaction& txn, uint64_t key, int64_t amount, uint32_t offset = 0) {
    return tree.add(txn, bytes_of(big_endian(key)), offset, IncrementType::i64, &amount);
  }
  /// Takes a snapshot of one addition, which the delta tree has.
  std::string take_add(uint64_t key, int64_t amount, Vid vid) {
    for (uint32_t i = 0; i < workers(); ++i) warm.cluster.worker(i).context->leave();
    const uint64_t epoch = warm.settle();
    const std::string delta(reinterpret_cast<const char*>(&amount), sizeof amount);
    const auto number = static_cast<uint8_t>(IncrementType::i64);
    return warm.take({{LogType::add, big_endian(key), 0, delta, vid, number}}, epoch, 0);
  }
};

/// R83: readers get the sum of what the snapshot has and of the addition, whether the record is
/// long enough, too short, or absent. So does the next addition.
inline std::string pending_adds_are_summed() {
  AddTree test;
  Problem problem;
  const std::string done = test.prepare_window();
  problem.expect(done.empty(), done);
  constexpr uint64_t kAbsent = ColdTree::kRecords + 5;
  for (const uint64_t key : {uint64_t{5}, kAbsent}) {
    const std::string before = key == kAbsent ? "" : "old";
    problem.expect(test.add(1, key, 7), Status::ok, "adding");
    problem.expect(test.value_of(key) == with_sum(before, 7), "a reader misses the addition");
    problem.expect(test.add(1, key, -2), Status::ok, "adding again");
    problem.expect(test.value_of(key) == with_sum(before, 5), "the second addition is wrong");
  }
  problem.expect(test.add(1, 6, 7, 16), Status::ok, "adding after the end");
  problem.expect(test.value_of(6) == with_sum("old", 7, 16), "the missing bytes are not zeros");
  return problem.text();
}

/// R83: scans in both directions get the sums.
inline std::string scans_find_pending_adds() {
  AddTree test;
  Problem problem;
  const std::string done = test.prepare_window();
  problem.expect(done.empty(), done);
  for (const bool forward : {true, false}) {
    const uint64_t key = forward ? 5 : 8;
    problem.expect(test.add(1, key, 7), Status::ok, "adding");
    const std::string sum = with_sum("old", 7);
    const std::string expected = forward ? "old " + sum + " old " : "old " + sum + " old ";
    problem.expect(test.scan(key - 1, key + 2, forward) == expected, "a scan misses the addition");
    problem.expect(test.value_of(key) == sum, "a look-up after the scan finds another sum");
  }
  return problem.text();
}

/// R83: the snapshot has the addition, and the delta tree still has it, too. It must count once.
inline std::string adds_of_the_snapshot_count_once() {
  AddTree test;
  Problem problem;
  std::string done = test.prepare_window();
  problem.expect(done.empty(), done);
  problem.expect(test.add(1, 5, 7), Status::ok, "adding");
  done = test.take_add(5, 7, test.warm.cluster.worker(1).transaction->last_vid());
  problem.expect(done.empty(), done);
  test.warm.skips_drain = true;
  done = test.warm.install(drop_all);
  problem.expect(done.empty(), done);
  problem.expect(test.delta_records() == 1, "the record was drained");
  problem.expect(test.value_of(5) == with_sum("old", 7), "the addition does not count once");
  return problem.text();
}

/// R83: an operation of the transaction that has added sees the sum, and replaces it.
inline std::string own_adds_are_seen() {
  AddTree test;
  Problem problem;
  const std::string done = test.prepare_window();
  problem.expect(done.empty(), done);
  problem.expect(test.write_both(1, 6, ColdTree::kRecords - 1), Status::ok, "writing");
  Transaction& txn = *test.warm.cluster.worker(0).transaction;
  std::string value;
  const int64_t one = 1;
  const auto read = [&](uint64_t key) {
    problem.expect(ColdTree::read(txn, test.tree, key, value), Status::ok, "read");
    return value;
  };
  problem.expect(txn.begin(), Status::ok, "begin");
  for (const uint64_t key : {1u, 2u, 3u, 4u, 5u}) {
    problem.expect(test.add_in(txn, key, 7), Status::ok, "adding");
    problem.expect(test.add_in(txn, key, 1), Status::ok, "adding again");
  }
  problem.expect(txn.planned_writes().size() == 5, "additions are not merged");
  problem.expect(read(1) == with_sum("old", 8), "does not see its addition");
  problem.expect(test.tree.increment(txn, bytes_of(big_endian(2)), 0, IncrementType::i64, &one),
                 Status::ok, "increment");
  problem.expect(test.tree.erase(txn, bytes_of(big_endian(3))), Status::ok, "erase");
  problem.expect(test.tree.insert(txn, bytes_of(big_endian(4)), bytes_of("new")),
                 Status::already_exists, "insert");
  const std::string sum = with_sum("old", 8);
  const std::string expected = sum + ' ' + with_sum("old", 9) + ' ' + sum + ' ' + sum + " new ";
  problem.expect(test.scan_in(txn, 1, 7) == expected, "a scan does not see its additions");
  problem.expect(txn.commit(), Status::ok, "commit");
  problem.expect(test.scan(1, 7) == expected, "the sums are not committed");
  return problem.text();
}

/// R83: a transaction has planned an addition when another one changes the record. No change is
/// lost.
inline std::string adds_notice_other_writes() {
  AddTree test;
  Problem problem;
  const std::string done = test.prepare_window();
  problem.expect(done.empty(), done);
  Transaction& txn = *test.warm.cluster.worker(0).transaction;
  for (const bool adds : {true, false}) {
    const uint64_t key = adds ? 5 : 7;
    problem.expect(txn.begin(), Status::ok, "begin");
    problem.expect(test.add_in(txn, key, 7), Status::ok, "adding");
    problem.expect(adds ? test.add(1, key, 100) : test.write(1, key, "new"), Status::ok,
                   "the other write");
    problem.expect(is_abort(txn.commit()), "the addition is committed to another record");
    const std::string expected = adds ? with_sum("old", 100) : "new";
    problem.expect(test.value_of(key) == expected, "the other write is lost");
  }
  return problem.text();
}

/// Random operations of one worker on a tree, and on a map. Their log records, additions among
/// them, go to snapshots, which are installed while additions are pending.
class AddOracle {
 public:
  explicit AddOracle(uint64_t seed_value) : random_(seed_value) {}

  /// Returns an error text, or an empty text if the tree always answered like the map.
  std::string run(uint32_t rounds) {
    std::string problem = test_.fill();
    if (problem.empty()) problem = test_.warm.install(drop_all);
    use_delta_trees(test_.warm);
    for (uint64_t key = 0; key < ColdTree::kRecords; ++key) model_[key] = "old";
    for (uint32_t round = 0; round < rounds && problem.empty(); ++round) {
      problem = run_round();
      if (!problem.empty()) problem += " in round " + std::to_string(round);
    }
    if (problem.empty() && added_ == 0) problem = "no addition was logged";
    return problem;
  }

 private:
  using Model = std::map<uint64_t, std::string>;
  static constexpr uint64_t kKeys = ColdTree::kRecords + 100;

  std::string run_round() {
    test_.warm.storage.uses_delta.store(random_() % 8 != 0, std::memory_order_relaxed);
    test_.open_window();
    std::string problem = run_transactions();
    if (!problem.empty()) return problem;
    for (uint32_t i = 0; i < 2; ++i) test_.warm.cluster.worker(i).context->leave();
    const uint64_t epoch = test_.warm.settle();
    std::vector<GleanedLog> logs = std::exchange(logs_, {});
    problem = run_transactions();
    test_.warm.cluster.worker(0).context->leave();
    if (problem.empty()) problem = test_.warm.take(std::move(logs), epoch, random_() % kKeys);
    if (problem.empty()) problem = run_transactions();
    test_.warm.cluster.worker(0).context->leave();
    if (!problem.empty() || random_() % 4 == 0) return problem;  // the snapshot is not installed
    test_.warm.skips_drain = random_() % 3 == 0;
    problem = test_.warm.install(random_() % 4 != 0 ? drop_all : keep_all);
    if (problem.empty()) problem = run_transactions();
    return problem.empty() && random_() % 3 == 0 ? check_all() : problem;
  }

  std::string run_transactions() {
    for (uint32_t i = 0; i < 20; ++i) {
      const uint64_t seed_value = random_();
      Model now;
      std::vector<GleanedLog> planned;
      std::string problem;
      TestWorker& worker = test_.warm.cluster.worker(0);
      const Status status = worker.run([&](Transaction& txn) {
        std::mt19937_64 choose(seed_value);
        now = model_;
        problem.clear();
        const Status one = operate(txn, choose, now, problem);
        planned = one == Status::ok ? planned_logs(txn, now) : std::vector<GleanedLog>();
        return one;
      });
      if (!problem.empty()) return problem;
      if (status != Status::ok) return "a transaction ended with " + std::string(to_string(status));
      for (GleanedLog& log : planned) {
        log.vid = worker.transaction->last_vid();
        added_ += log.type == LogType::add;
        logs_.push_back(std::move(log));
      }
      model_ = std::move(now);
    }
    return {};
  }

  /// Returns what the commit logs, in gleaned form.
  static std::vector<GleanedLog> planned_logs(Transaction& txn, const Model& now) {
    std::vector<GleanedLog> logs;
    for (const WriteEntry& entry : txn.planned_writes()) {
      const LogRecord& log = txn.log_of(entry);
      const std::string key(reinterpret_cast<const char*>(log.key()), log.key_bytes);
      uint64_t number = 0;
      std::memcpy(&number, key.data(), sizeof number);
      if (entry.increment != 0) {  // the commit computes the sum
        logs.push_back({LogType::insert, key, 0, now.at(__builtin_bswap64(number)), {}});
        continue;
      }
      logs.push_back({log.type,
                      key,
                      log.payload_offset,
                      {reinterpret_cast<const char*>(log.payload()), log.payload_bytes},
                      {},
                      log.number});
    }
    return logs;
  }

  Status operate(Transaction& txn, std::mt19937_64& choose, Model& now, std::string& problem) {
    const uint64_t count = 1 + choose() % 5;
    for (uint64_t i = 0; i < count; ++i) {
      // Few keys are hot. Some of the others may share their slice with others.
      const uint64_t key = choose() % 2 == 0 ? choose() % 10 * 100 + 3 : choose() % kKeys;
      const Status status = operate_on(txn, choose, key, now, problem);
      if (status != Status::ok || !problem.empty()) return status;
    }
    return Status::ok;
  }

  Status operate_on(Transaction& txn, std::mt19937_64& choose, uint64_t key, Model& now,
                    std::string& problem) {
    const std::string name = big_endian(key);
    const Bytes bytes = bytes_of(name);
    const auto found = now.find(key);
    const bool exists = found != now.end();
    const auto amount = static_cast<int64_t>(choose() % 1000) - 500;
    const auto expect = [&](Status status, bool is_done, Status otherwise) {
      if (is_abort(status)) return status;
      if (status != (is_done ? Status::ok : otherwise)) {
        problem = "key " + std::to_string(key) + " gave " + std::string(to_string(status));
      }
      return Status::ok;
    };
    switch (choose() % 10) {
      case 0:
        return check_value(txn, key, now, problem);
      case 1:
        return check_range(txn, key, key + choose() % 20, choose() % 2 == 0, now, problem);
      case 2: {
        const Status status = test_.tree.upsert(txn, bytes, bytes_of("blind"));
        now[key] = "blind";
        return expect(status, true, Status::ok);
      }
      case 3: {
        const Status status = test_.tree.erase(txn, bytes);
        now.erase(key);
        return expect(status, exists, Status::not_found);
      }
      case 4: {
        const Status status = test_.tree.insert(txn, bytes, bytes_of("new"));
        if (!exists) now[key] = "new";
        return expect(status, !exists, Status::already_exists);
      }
      case 5: {
        const Status status = test_.tree.increment(txn, bytes, 0, IncrementType::i64, &amount);
        const bool fits = exists && found->second.size() >= sizeof amount;
        if (fits) found->second = with_sum(found->second, amount);
        return expect(status, fits, exists ? Status::out_of_range : Status::not_found);
      }
      case 6: {
        const Status status = test_.tree.update_range(txn, bytes, 1, bytes_of("x"));
        if (exists) found->second[1] = 'x';
        return expect(status, exists, Status::not_found);
      }
      default: {
        const auto offset = static_cast<uint32_t>(choose() % 8 == 0 ? choose() % 20 : 0);
        const Status status = test_.add_in(txn, key, amount, offset);
        now[key] = with_sum(exists ? found->second : "", amount, offset);
        return expect(status, true, Status::ok);
      }
    }
  }

  Status check_value(Transaction& txn, uint64_t key, const Model& now, std::string& problem) {
    std::string value;
    const Status status = ColdTree::read(txn, test_.tree, key, value);
    if (is_abort(status)) return status;
    const auto found = now.find(key);
    const bool is_right =
        status == Status::ok ? found != now.end() && found->second == value : found == now.end();
    if (!is_right) problem = "a look-up of key " + std::to_string(key) + " is wrong";
    return Status::ok;
  }

  Status check_range(Transaction& txn, uint64_t first, uint64_t last, bool forward,
                     const Model& now, std::string& problem) {
    std::vector<std::pair<uint64_t, std::string>> expected(now.lower_bound(first),
                                                           now.lower_bound(last));
    if (!forward) std::ranges::reverse(expected);
    const std::string low = big_endian(first);
    const std::string high = big_endian(last);
    MasterTreeCursor cursor(
        test_.tree, txn,
        {.low = bytes_of(low), .has_low = true, .high = bytes_of(high), .has_high = true}, forward);
    CursorReader reader(cursor, (first + last) % 5);
    size_t at = 0;
    Status status = reader.next();
    for (; status == Status::ok; status = reader.next()) {
      const bool is_expected =
          at < expected.size() &&
          std::ranges::equal(reader.key(), bytes_of(big_endian(expected[at].first))) &&
          std::ranges::equal(reader.payload(), bytes_of(expected[at].second));
      if (!is_expected) {
        problem = "a scan from " + std::to_string(first) + " is wrong";
        return Status::ok;
      }
      ++at;
    }
    if (status != Status::end_of_scan) return status;
    if (at != expected.size()) problem = "a scan from " + std::to_string(first) + " ends early";
    return Status::ok;
  }

  std::string check_all() {
    std::string problem;
    const Status status = test_.warm.cluster.worker(0).run([&](Transaction& txn) {
      problem.clear();
      return check_range(txn, 0, kKeys + 1, true, model_, problem);
    });
    if (status != Status::ok) return "the scan ended with " + std::string(to_string(status));
    return problem;
  }

  std::mt19937_64 random_;
  AddTree test_;
  Model model_;
  std::vector<GleanedLog> logs_;  // of commits that no snapshot has
  uint64_t added_ = 0;
};

inline std::string adds_answer_like_a_map(uint32_t rounds) { return AddOracle(seed()).run(rounds); }

}  // namespace atolldb::test
