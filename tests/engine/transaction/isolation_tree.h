// A Master-tree that changes while transactions read a snapshot of it (R18). The reads are compared
// with a map of the snapshot's content. The results of commits are compared with the set of keys
// that have changed since.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "tests/engine/compose/random_history.h"
#include "tests/engine/mastertree/cursor_reader.h"
#include "tests/engine/snapshot/cold_storages.h"

namespace atolldb::test {

using Records = std::map<std::string, std::string>;

class TreeIsolation {
 public:
  explicit TreeIsolation(uint64_t seed_value)
      : history_(seed_value), random_(seed_value ^ 0x5bd1e995), stage_(StorageType::mastertree) {}

  /// Makes two snapshots, the second with changed pages only. `has_delta`: writes to cold records
  /// go to the delta tree. Returns an error text, or an empty text.
  std::string begin(uint64_t records, bool has_delta) {
    history_.key_space = records;
    stage_.storage.id = 1;  // the id of the cluster's first storage
    for (const uint32_t erase_percent : {0u, 20u}) {
      const auto logs = history_.round(records, erase_percent);
      const auto round = stage_.round(logs, history_.partitions(3), history_.epoch);
      if (!round) return round.error().message;
    }
    for (const auto& [key, record] : history_.model) {
      old_[key] = record.payload;
      keys_.push_back(key);
    }
    now_ = old_;
    cold_ = std::make_unique<ColdCluster>(stage_, 2);
    cold_->storage.uses_delta.store(has_delta, std::memory_order_relaxed);
    return "";
  }

  /// Changes one record of the volatile pages, in a transaction of the second worker.
  std::string change() {
    const std::string key = key_of(below(20) != 0);
    const auto found = now_.find(key);
    const bool erases = found != now_.end() && below(3) == 0;
    const std::string payload = any_payload();
    const Status status = cold_->run_amid([&](Transaction& txn) {
      return erases ? tree().erase(txn, bytes_of(key))
                    : tree().upsert(txn, bytes_of(key), bytes_of(payload));
    });
    // The records of one slice do not fit in a page. The change has no effect.
    if (status == Status::payload_too_long) return "";
    if (status != Status::ok) return "a change ended with " + std::string(to_string(status));
    if (erases) {
      now_.erase(key);
    } else {
      now_[key] = payload;
    }
    changed_.insert(key);
    return "";
  }

  /// Runs a read-only transaction on a snapshot, with changes in its middle.
  std::string read_only(int steps) {
    Transaction& txn = *cold_->cluster.worker(0).transaction;
    if (txn.begin(kMaxEpoch, {Isolation::snapshot_read_only}) != Status::ok) return "no begin";
    std::string problem;
    for (int i = 0; i < steps && problem.empty(); ++i) {
      problem = change();
      if (problem.empty()) problem = below(3) == 0 ? scan(txn, old_, false) : look_up(txn, old_);
    }
    if (problem.empty()) problem = refuses_writes(txn);
    if (txn.read_set_size() + txn.pointer_set_size() + txn.page_version_set_size() != 0) {
      problem = "something was registered";
    }
    const Status status = txn.commit();
    if (problem.empty() && status != Status::ok) problem = "it did not commit";
    if (problem.empty() && txn.commit_epoch() != 0) problem = "it depends on a commit";
    return problem;
  }

  /// Runs a transaction on a snapshot that also writes, with changes in its middle.
  std::string read_and_write(int steps) {
    Transaction& txn = *cold_->cluster.worker(0).transaction;
    if (txn.begin(kMaxEpoch, {Isolation::snapshot}) != Status::ok) return "no begin";
    written_.clear();
    Records seen = old_;
    std::string problem;
    for (int i = 0; i < steps && problem.empty() && !is_over_; ++i) {
      if (below(4) == 0) problem = change();
      if (!problem.empty()) break;
      switch (below(4)) {
        case 0:
          problem = scan(txn, seen, true);
          break;
        case 1:
          problem = look_up(txn, seen);
          break;
        default:
          problem = write(txn, seen);
      }
    }
    if (std::exchange(is_over_, false)) {
      txn.rollback(Status::payload_too_long);
      return problem;
    }
    const Status status = txn.commit();
    return problem.empty() ? judge(status, seen) : problem;
  }

  /// Checks that a serializable transaction sees the result of all commits.
  std::string check_now() {
    std::string problem;
    const Status status = cold_->run_amid([&](Transaction& txn) {
      problem = scan_all(txn, now_);
      return Status::ok;
    });
    return status == Status::ok ? problem : "the last scan does not commit";
  }

  uint64_t commits() const { return commits_; }
  uint64_t conflicts() const { return conflicts_; }
  /// Number of conflicts of transactions that wrote no changed key. If a page has elided
  /// tombstones, it cannot rule out that they were tombstones of the written keys.
  uint64_t needless() const { return needless_; }

 private:
  uint64_t below(uint64_t bound) { return random_() % bound; }
  MasterTree tree() const { return MasterTree(cold_->storage); }
  std::string any_payload() { return std::string(below(60), static_cast<char>('a' + below(26))); }

  std::string any_key() {
    std::string key = keys_[below(keys_.size())];
    switch (below(12)) {
      case 0:
        return key + static_cast<char>(below(256));
      case 1:
        return key.substr(0, below(key.size() + 1));
      case 2:
        return key + "-and a suffix of its own " + std::to_string(below(5));
      default:
        return key;
    }
  }

  /// Returns a random key. Changes and the writes of transactions on snapshots mostly use different
  /// keys.
  std::string key_of(bool changes) {
    for (;;) {
      std::string key = any_key();
      if ((std::hash<std::string>()(key) % 4 == 0) != changes) return key;
    }
  }

  static std::string same(Status got, Status wanted, const std::string& what) {
    return got == wanted ? ""
                         : what + ": got " + std::string(to_string(got)) + ", wanted " +
                               std::string(to_string(wanted));
  }

  std::string look_up(Transaction& txn, const Records& seen) {
    const std::string key = any_key();
    const auto found = seen.find(key);
    std::string payload(MasterTree::kMaxPayloadBytes, '\0');
    uint32_t bytes = 0;
    const Status status = tree().get(txn, bytes_of(key), payload.data(),
                                     static_cast<uint32_t>(payload.size()), bytes);
    const std::string problem =
        same(status, found == seen.end() ? Status::not_found : Status::ok, "get");
    if (!problem.empty() || found == seen.end()) return problem;
    return payload.substr(0, bytes) == found->second ? "" : "get: another payload";
  }

  /// Scans forward or backward, everything or a range, to the end or not. `writes`: also writes
  /// before and after the cursor's position.
  std::string scan(Transaction& txn, Records& seen, bool writes) {
    const std::string low = any_key();
    const std::string high = any_key();
    const bool forward = below(2) == 0;
    const ScanRange range{bytes_of(low),  below(3) != 0, below(2) == 0,
                          bytes_of(high), below(3) != 0, below(2) == 0};
    MasterTreeCursor cursor(tree(), txn, range, forward);
    // A batch of several rows would not show the writes of the scan.
    CursorReader reader(cursor, writes ? below(2) : below(8));
    std::string last;
    bool has_last = false;
    for (uint64_t left = below(2) == 0 ? ~uint64_t{0} : below(20); left > 0 && !is_over_; --left) {
      const auto next = next_of(seen, range, forward, has_last ? &last : nullptr);
      const Status status = reader.next();
      std::string problem =
          same(status, next == seen.end() ? Status::end_of_scan : Status::ok, "next");
      if (!problem.empty() || next == seen.end()) return problem;
      problem = compare(reader, *next);
      if (!problem.empty()) return problem;
      last = next->first;
      has_last = true;
      if (writes && below(40) == 0) problem = write(txn, seen);
      if (problem.empty() && below(8) == 0) problem = change();
      if (!problem.empty()) return problem;
    }
    return "";
  }

  static Records::const_iterator next_of(const Records& seen, const ScanRange& range, bool forward,
                                         const std::string* last) {
    const auto text = [](Bytes bytes) {
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    const auto is_inside = [&](const std::string& key) {
      const int low = range.has_low ? key.compare(text(range.low)) : 1;
      const int high = range.has_high ? key.compare(text(range.high)) : -1;
      return (low > 0 || (low == 0 && range.low_inclusive)) &&
             (high < 0 || (high == 0 && range.high_inclusive));
    };
    if (forward) {
      auto at = last != nullptr ? seen.upper_bound(*last)
                : range.has_low ? seen.lower_bound(text(range.low))
                                : seen.begin();
      if (last == nullptr && at != seen.end() && !is_inside(at->first) && range.has_low &&
          at->first == text(range.low)) {
        ++at;
      }
      return at != seen.end() && is_inside(at->first) ? at : seen.end();
    }
    auto at = last != nullptr  ? seen.lower_bound(*last)
              : range.has_high ? seen.upper_bound(text(range.high))
                               : seen.end();
    if (at == seen.begin()) return seen.end();
    --at;
    if (last == nullptr && !is_inside(at->first) && range.has_high &&
        at->first == text(range.high)) {
      if (at == seen.begin()) return seen.end();
      --at;
    }
    return is_inside(at->first) ? at : seen.end();
  }

  static std::string compare(const CursorReader& reader, const Records::value_type& wanted) {
    if (!std::ranges::equal(reader.key(), bytes_of(wanted.first))) return "next: another key";
    const bool is_same = std::ranges::equal(reader.payload(), bytes_of(wanted.second));
    return is_same ? "" : "the cursor reads another payload";
  }

  std::string scan_all(Transaction& txn, const Records& wanted) {
    MasterTreeCursor cursor(tree(), txn, {}, true);
    CursorReader reader(cursor, below(8));
    for (const auto& record : wanted) {
      if (reader.next() != Status::ok) return "the scan ends early";
      const std::string problem = compare(reader, record);
      if (!problem.empty()) return problem;
    }
    return reader.next() == Status::end_of_scan ? "" : "the scan finds more";
  }

  std::string write(Transaction& txn, Records& seen) {
    const std::string key = key_of(below(40) == 0);
    const auto found = seen.find(key);
    const bool exists = found != seen.end();
    const std::string payload = any_payload();
    const uint64_t delta = below(1000);
    Status status = Status::ok;
    Status wanted = exists ? Status::ok : Status::not_found;
    std::string after = payload;
    const uint64_t kind = below(6);
    if (kind == 0) {
      status = tree().insert(txn, bytes_of(key), bytes_of(payload));
      wanted = exists ? Status::already_exists : Status::ok;
    } else if (kind == 1) {
      status = tree().upsert(txn, bytes_of(key), bytes_of(payload));
      wanted = Status::ok;
    } else if (kind == 2) {
      status = tree().update(txn, bytes_of(key), bytes_of(payload));
    } else if (kind == 3) {
      status = tree().erase(txn, bytes_of(key));
    } else if (kind == 4) {
      const auto offset = static_cast<uint32_t>(below(20));
      status = tree().update_range(txn, bytes_of(key), offset, bytes_of(payload));
      if (exists && offset + payload.size() > found->second.size()) wanted = Status::out_of_range;
      if (exists && wanted == Status::ok) {
        after = std::string(found->second).replace(offset, payload.size(), payload);
      }
    } else {
      status = tree().increment(txn, bytes_of(key), 0, IncrementType::u64, &delta);
      if (exists && found->second.size() < 8) wanted = Status::out_of_range;
      if (exists && wanted == Status::ok) {
        uint64_t number = 0;
        after = found->second;
        std::memcpy(&number, after.data(), 8);
        number += delta;
        std::memcpy(after.data(), &number, 8);
      }
    }
    if (status == Status::payload_too_long || status == Status::phantom) {
      is_over_ = true;
      return "";
    }
    const std::string problem = same(status, wanted, "write " + std::to_string(kind));
    if (!problem.empty() || status != Status::ok) return problem;
    written_.insert(key);
    if (kind == 3) {
      seen.erase(found);
    } else {
      seen[key] = after;
    }
    return "";
  }

  std::string refuses_writes(Transaction& txn) {
    const std::string key = any_key();
    const Bytes bytes = bytes_of(key);
    const uint64_t one = 1;
    const Status answers[] = {tree().insert(txn, bytes, bytes),
                              tree().upsert(txn, bytes, bytes),
                              tree().update(txn, bytes, bytes),
                              tree().update_range(txn, bytes, 0, bytes),
                              tree().increment(txn, bytes, 0, IncrementType::u64, &one),
                              tree().erase(txn, bytes)};
    for (const Status answer : answers) {
      if (answer != Status::read_only_transaction) return "a write is not refused";
    }
    return "";
  }

  /// Compares the status of the commit with the expected one.
  std::string judge(Status status, const Records& seen) {
    const bool conflicts = std::ranges::any_of(
        written_, [&](const std::string& key) { return changed_.contains(key); });
    if (conflicts) {
      ++conflicts_;
      // A planned write may not go to a tombstone (R12), so write_conflict is right, too. A retry
      // would end with snapshot_conflict (R18).
      const bool is_right = status == Status::snapshot_conflict || status == Status::write_conflict;
      return is_right ? "" : "a write of what has changed: " + std::string(to_string(status));
    }
    if (status == Status::snapshot_conflict) {
      ++needless_;
      const bool reserves = std::ranges::any_of(
          written_, [&](const std::string& key) { return !old_.contains(key); });
      return reserves ? "" : "a conflict without a changed record";
    }
    if (status != Status::ok) return "the commit answers " + std::string(to_string(status));
    ++commits_;
    for (const std::string& key : written_) {
      changed_.insert(key);
      const auto record = seen.find(key);
      if (record == seen.end()) {
        now_.erase(key);
      } else {
        now_[key] = record->second;
      }
    }
    return "";
  }

  RandomHistory history_;
  std::mt19937_64 random_;
  SnapshotStage stage_;
  std::unique_ptr<ColdCluster> cold_;
  std::vector<std::string> keys_;  // the keys of old_
  Records old_;                    // content as of the snapshot
  Records now_;                    // content with all commits
  std::set<std::string> changed_;  // keys written since the snapshot
  std::set<std::string> written_;  // keys written by the current transaction
  bool is_over_ = false;           // the current transaction cannot continue
  uint64_t commits_ = 0;
  uint64_t conflicts_ = 0;
  uint64_t needless_ = 0;
};

/// Returns an error text, or an empty text if all is right.
inline std::string tree_isolation_oracle(uint64_t records, uint64_t rounds,
                                         bool has_delta = false) {
  TreeIsolation oracle(seed());
  std::string problem = oracle.begin(records, has_delta);
  for (uint64_t round = 0; round < rounds && problem.empty(); ++round) {
    problem = oracle.read_only(20);
    // Long transactions, which nearly always meet a changed record, and short ones, which can
    // commit.
    for (int i = 0; i < 5 && problem.empty(); ++i) {
      problem = oracle.read_and_write(i % 2 == 0 ? 2 : 10);
    }
    if (!problem.empty()) problem += " in round " + std::to_string(round);
  }
  if (problem.empty()) problem = oracle.check_now();
  std::printf("%llu commits, %llu conflicts, %llu needless\n",
              static_cast<unsigned long long>(oracle.commits()),
              static_cast<unsigned long long>(oracle.conflicts()),
              static_cast<unsigned long long>(oracle.needless()));
  if (problem.empty() && (oracle.commits() == 0 || oracle.conflicts() == 0)) {
    problem = "all transactions ended in the same way";
  }
  return problem;
}

}  // namespace atolldb::test
