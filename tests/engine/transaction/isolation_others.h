// Arrays and sequential storages that change while transactions read a snapshot (R18).
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/engine/snapshot/cold_storages.h"

namespace atolldb::test {

/// Records have 16 bytes: two numbers, one of which is written at a time.
class ArrayIsolation {
 public:
  using Record = std::array<uint64_t, 2>;

  ArrayIsolation(uint64_t seed_value, uint64_t record_count)
      : random_(seed_value),
        count_(record_count),
        stage_(StorageType::array, record_count, sizeof(Record)) {
    stage_.storage.id = 1;
    std::vector<GleanedLog> logs;
    for (uint64_t i = 0; i < 300; ++i) old_[below(count_)] = {below(9), below(9)};
    for (const auto& [index, record] : old_) {
      logs.push_back({LogType::update, big_endian(index), 0,
                      std::string(reinterpret_cast<const char*>(record.data()), sizeof record),
                      Vid::make(5, 1)});
    }
    CHECK(stage_.round(logs, {""}, 10).has_value());
    cold_ = std::make_unique<ColdCluster>(stage_, 2);
    now_ = old_;
  }

  std::string round(Isolation isolation) {
    Transaction& txn = *cold_->cluster.worker(0).transaction;
    if (txn.begin(kMaxEpoch, {isolation}) != Status::ok) return "no begin";
    std::map<uint64_t, Record> seen = old_;
    std::set<uint64_t> written;
    std::string problem;
    for (int step = 0; step < 12 && problem.empty(); ++step) {
      problem = change();
      if (problem.empty()) problem = read(txn, seen);
      if (problem.empty() && below(3) == 0) {
        problem = write(txn, isolation == Isolation::snapshot_read_only, seen, written);
      }
    }
    if (txn.read_set_size() + txn.pointer_set_size() != 0) problem = "something was registered";
    const Status status = txn.commit();
    const bool conflicts =
        std::ranges::any_of(written, [&](uint64_t index) { return changed_.contains(index); });
    if (problem.empty() && status != (conflicts ? Status::snapshot_conflict : Status::ok)) {
      problem = "the commit answers " + std::string(to_string(status));
    }
    if (status == Status::ok) {
      for (const uint64_t index : written) {
        now_[index] = seen[index];
        changed_.insert(index);
      }
    }
    return problem;
  }

  std::string check_now() {
    const Array array(cold_->storage);
    std::string problem;
    const Status status = cold_->run_amid([&](Transaction& txn) {
      for (const auto& [index, wanted] : now_) {
        Record record{};
        const Status one = array.get(txn, index, record.data());
        if (one != Status::ok) return one;
        if (record != wanted) problem = "what all commits have made is something else";
      }
      return Status::ok;
    });
    return status == Status::ok ? problem : "the last look does not commit";
  }

 private:
  uint64_t below(uint64_t bound) { return random_() % bound; }
  /// Returns a random index; half of the time, the index of a record that is not 0.
  uint64_t any_index() {
    if (below(2) == 0) return below(count_);
    const auto found = old_.lower_bound(below(count_));
    return found == old_.end() ? old_.begin()->first : found->first;
  }

  std::string change() {
    const uint64_t index = any_index();
    const Record record = {random_(), random_()};
    const Status status = cold_->run_amid([&](Transaction& txn) {
      return Array(cold_->storage).update(txn, index, 0, sizeof record, record.data());
    });
    now_[index] = record;
    changed_.insert(index);
    return status == Status::ok ? "" : "a change ended with " + std::string(to_string(status));
  }

  static Record of(const std::map<uint64_t, Record>& seen, uint64_t index) {
    const auto found = seen.find(index);
    return found == seen.end() ? Record{} : found->second;
  }

  std::string read(Transaction& txn, const std::map<uint64_t, Record>& seen) {
    const Array array(cold_->storage);
    const uint64_t index = any_index();
    Record record{};
    if (below(3) == 0) {
      uint64_t indexes[3];
      Record records[3];
      for (uint64_t& each : indexes) each = any_index();
      if (array.get_many(txn, indexes, records) != Status::ok) return "get_many";
      for (int i = 0; i < 3; ++i) {
        if (records[i] != of(seen, indexes[i])) return "get_many: another record";
      }
      return "";
    }
    if (below(3) == 0) {
      const bool forward = below(2) == 0;
      const uint64_t last = std::min(index + below(50), count_ - 1);
      ArrayCursor cursor(array, txn, index, last, forward);
      for (uint64_t i = 0; i <= last - index; ++i) {
        uint64_t at = 0;
        if (cursor.next(at, record.data()) != Status::ok) return "the cursor ends early";
        if (at != (forward ? index + i : last - i)) return "the cursor is elsewhere";
        if (record != of(seen, at)) return "the cursor reads another record";
      }
      return "";
    }
    if (array.get(txn, index, record.data()) != Status::ok) return "get";
    return record == of(seen, index) ? "" : "get: another record";
  }

  std::string write(Transaction& txn, bool is_refused, std::map<uint64_t, Record>& seen,
                    std::set<uint64_t>& written) {
    const Array array(cold_->storage);
    const uint64_t index = any_index();
    const uint64_t which = below(2);
    const auto offset = static_cast<uint32_t>(which * sizeof(uint64_t));
    const uint64_t number = below(1000);
    Record after = of(seen, index);
    Status status = Status::ok;
    switch (below(3)) {
      case 0:
        status = array.update(txn, index, offset, sizeof number, &number);
        after[which] = number;
        break;
      case 1:
        status = array.increment(txn, index, offset, IncrementType::u64, &number);
        after[which] += number;
        break;
      default: {
        RecordRef ref;
        uint64_t old = 0;
        status = array.get_for_update(txn, index, offset, sizeof old, &old, ref);
        if (status == Status::ok && old != after[which]) return "get_for_update: another number";
        if (status == Status::ok) {
          status = array.update(txn, ref, index, offset, sizeof number, &number);
        }
        after[which] = number;
      }
    }
    if (is_refused) return status == Status::read_only_transaction ? "" : "it is not refused";
    if (status != Status::ok) return "a write ended with " + std::string(to_string(status));
    seen[index] = after;
    written.insert(index);
    return "";
  }

  std::mt19937_64 random_;
  uint64_t count_;
  SnapshotStage stage_;
  std::unique_ptr<ColdCluster> cold_;
  std::map<uint64_t, Record> old_;  // records that are not 0 in the snapshot
  std::map<uint64_t, Record> now_;
  std::set<uint64_t> changed_;
};

inline std::string array_isolation_oracle(uint64_t record_count, uint64_t rounds) {
  ArrayIsolation oracle(seed(), record_count);
  std::string problem;
  for (uint64_t i = 0; i < rounds && problem.empty(); ++i) {
    problem = oracle.round(i % 3 == 0 ? Isolation::snapshot_read_only : Isolation::snapshot);
  }
  return problem.empty() ? oracle.check_now() : problem;
}

/// Scans of a heap on a snapshot find the snapshot's records, followed by the transaction's own
/// appends.
inline std::string sequential_isolation_oracle(uint64_t rounds) {
  std::mt19937_64 random(seed());
  SnapshotStage stage(StorageType::sequential);
  stage.storage.id = 1;
  std::vector<std::string> old;
  std::vector<GleanedLog> logs;
  for (uint64_t i = 0; i < 200; ++i) {
    old.emplace_back(random() % 300, static_cast<char>('a' + random() % 26));
    logs.push_back({LogType::append, big_endian(i + 2) + std::string(8, '\0'), 0, old.back(),
                    Vid::make(i + 2, 1)});
  }
  if (const auto round = stage.round(logs, {""}, 1000); !round) return round.error().message;
  ColdCluster cold(stage, 2);
  const Sequential heap(cold.storage);
  uint64_t appended = 0;
  const auto append_amid = [&] {
    ++appended;
    return cold.run_amid([&](Transaction& txn) { return heap.append(txn, bytes_of("later")); });
  };
  const auto count = [&](Transaction& txn, std::vector<std::string> wanted) -> std::string {
    SequentialCursor cursor(heap, txn);
    for (const std::string& payload : wanted) {
      if (cursor.next() != Status::ok) return "the scan ends early";
      if (!std::ranges::equal(cursor.payload(), bytes_of(payload))) return "another payload";
      if (random() % 50 == 0 && append_amid() != Status::ok) return "an append amid it";
    }
    return cursor.next() == Status::end_of_scan ? "" : "the scan finds more";
  };
  std::string problem;
  uint64_t own = 0;
  for (uint64_t i = 0; i < rounds && problem.empty(); ++i) {
    const bool writes = i % 2 == 1;
    Transaction& txn = *cold.cluster.worker(0).transaction;
    const Isolation isolation = writes ? Isolation::snapshot : Isolation::snapshot_read_only;
    if (txn.begin(kMaxEpoch, {isolation}) != Status::ok) return "no begin";
    if (append_amid() != Status::ok) return "an append amid it";
    std::vector<std::string> wanted = old;
    const Status status = heap.append(txn, bytes_of("own"));
    if (status != (writes ? Status::ok : Status::read_only_transaction)) return "the own append";
    if (writes) wanted.emplace_back("own");
    problem = count(txn, wanted);
    if (txn.commit() != Status::ok) return "it did not commit";
    own += writes ? 1 : 0;
  }
  if (!problem.empty()) return problem;
  uint64_t found = 0;
  const Status status = cold.run_amid([&](Transaction& txn) {
    SequentialCursor cursor(heap, txn);
    Status one = cursor.next();
    for (found = 0; one == Status::ok; one = cursor.next()) ++found;
    return one == Status::end_of_scan ? Status::ok : one;
  });
  if (status != Status::ok) return "the last scan";
  return found == old.size() + appended + own ? "" : "a later scan finds another number";
}

}  // namespace atolldb::test
