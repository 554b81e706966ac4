// Bodies of tests of storages whose pages are in snapshots. A body returns an error text, or an
// empty text if all is right.
//
// Each round runs on a new cluster. The cluster begins with the snapshot of everything committed
// before, and without volatile pages. The cache is so small that frames are constantly reused.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/array/array.h"
#include "engine/mastertree/inspect.h"
#include "engine/sequential/sequential.h"
#include "tests/engine/compose/snapshot_stage.h"
#include "tests/engine/mastertree/oracle.h"
#include "tests/engine/snapshot/cache_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test {

inline constexpr uint64_t kEpochsPerRound = 1'000'000;

/// A cluster whose storage is in the newest snapshot of a stage, and at first has no volatile
/// pages.
class ColdCluster {
 public:
  /// `frames`: size of the cache in pages.
  ColdCluster(SnapshotStage& stage, uint32_t workers, bool has_clock = true, uint32_t frames = 16)
      : stage_(stage),
        cluster(1, workers, {.start_epoch = stage.epoch + 1, .clock = has_clock}),
        storage(cluster.create("cold", stage.storage.type, stage.storage.payload_bytes,
                               stage.storage.record_count)),
        cache_(stage.reader, frames, workers),
        published(*cluster.view().shared[0], cluster.view().control->readable_snapshot) {
    stage.storage.id = storage.id;
    storage.root.snapshot_word.store(stage.storage.base_root.word(), std::memory_order_release);
    cluster.use_snapshots(cache_.cache);
    cluster.use_published(published);
    if (stage.snapshot != 0) publish_newest(view_of(stage, storage.id));
  }

  /// R39: runs a transaction of worker 1 in the middle of a transaction of worker 0, on the same
  /// thread. Both workers leave their round, so that neither waits for a frame that the other used
  /// last.
  template <typename Body>
  Status run_amid(Body&& body) {
    cluster.worker(0).snapshots->leave();
    const Status status = cluster.worker(1).run(body);
    cluster.worker(1).snapshots->leave();
    return status;
  }

  /// Publishes the snapshot, then stores its id in the control segment, as the coordinator does.
  void publish_newest(std::unique_ptr<const SnapshotView> view) {
    const uint32_t id = view->id();
    CHECK(published.publish(std::move(view)).has_value());
    make_newest(id);
  }
  void make_newest(uint32_t id) {
    cluster.view().control->readable_snapshot.store(id, std::memory_order_seq_cst);
  }

  /// Returns the newest snapshot of the stage, as transactions see it.
  static std::unique_ptr<const SnapshotView> view_of(const SnapshotStage& stage, uint32_t storage) {
    return std::make_unique<SnapshotView>(
        stage.snapshot, stage.epoch,
        std::vector<SnapshotView::Root>{{storage, stage.storage.base_root}});
  }

  /// Takes the next snapshot from the log records of this round.
  std::string take(std::vector<GleanedLog> logs) {
    sort_gleaned(logs);
    const auto combined = stage_.round(logs, {""}, stage_.epoch + kEpochsPerRound);
    return combined ? "" : combined.error().message;
  }
  uint64_t next_epoch() const { return stage_.epoch + kEpochsPerRound; }
  SnapshotCache& cache() { return cache_.cache; }

 private:
  SnapshotStage& stage_;

 public:
  TestCluster cluster;
  StorageControl& storage;

 private:
  TestCache cache_;

 public:
  PublishedSnapshots published;
};

/// Returns the log records that change `before` into `now`, in one epoch.
inline std::vector<GleanedLog> changes_between(const OracleWorker::Model& before,
                                               const OracleWorker::Model& now, uint64_t epoch) {
  std::vector<GleanedLog> logs;
  for (const auto& [key, payload] : before) {
    if (!now.contains(key)) logs.push_back({LogType::erase, key, 0, "", Vid::make(epoch, 1)});
  }
  for (const auto& [key, payload] : now) {
    const auto old = before.find(key);
    if (old != before.end() && old->second == payload) continue;
    logs.push_back({LogType::insert, key, 0, payload, Vid::make(epoch, 1)});
  }
  return logs;
}

/// Runs random transactions of several workers on a Master-tree. `has_delta`: writes to cold
/// records go to the delta tree.
inline std::string cold_tree_oracle(KeyShape shape, uint32_t workers, uint64_t rounds,
                                    uint64_t transactions, bool has_delta = false) {
  OracleOptions options{.shape = shape, .transactions = transactions, .seed = seed()};
  options.workers = workers;
  options.keys_per_worker = 600;
  std::vector<OracleWorker> oracles;
  for (uint32_t i = 0; i < workers; ++i) oracles.emplace_back(options, i);
  SnapshotStage stage(storage_type_of(shape));
  OracleWorker::Model before;
  for (uint64_t round = 0; round < rounds; ++round) {
    ColdCluster cold(stage, workers);
    cold.storage.uses_delta.store(has_delta, std::memory_order_relaxed);
    std::vector<std::string> problems(workers);
    cold.cluster.run_threads([&](uint32_t index, TestWorker& worker) {
      problems[index] = oracles[index].run(worker, MasterTree(cold.storage));
    });
    OracleWorker::Model now;
    for (uint32_t i = 0; i < workers; ++i) {
      if (!problems[i].empty()) return problems[i] + " in round " + std::to_string(round);
      now.insert(oracles[i].model().begin(), oracles[i].model().end());
    }
    TreeStatistics statistics;
    const std::string unsound = check_tree(cold.cluster.view(), cold.storage, statistics);
    if (!unsound.empty()) return unsound;
    const std::string problem = cold.take(changes_between(before, now, cold.next_epoch()));
    if (!problem.empty()) return problem;
    before = std::move(now);
  }
  return {};
}

/// Runs random transactions of one worker on an array of 8-byte counters: reads, updates,
/// increments, multi-record look-ups and scans.
inline std::string cold_array_oracle(uint64_t record_count, uint64_t rounds,
                                     uint64_t transactions) {
  std::mt19937_64 random(seed());
  SnapshotStage stage(StorageType::array, record_count, sizeof(uint64_t));
  std::map<uint64_t, uint64_t> model;  // records that are not 0
  std::string problem;
  for (uint64_t round = 0; round < rounds && problem.empty(); ++round) {
    ColdCluster cold(stage, 1);
    const Array array(cold.storage);
    std::map<uint64_t, uint64_t> now = model;
    for (uint64_t i = 0; i < transactions && problem.empty(); ++i) {
      const uint64_t seed = random();
      std::map<uint64_t, uint64_t> after;
      const Status status = cold.cluster.worker(0).run([&](Transaction& txn) {
        after = now;
        problem.clear();
        std::mt19937_64 choose(seed);
        const auto value_of = [&](uint64_t index) {
          const auto found = after.find(index);
          return found == after.end() ? 0 : found->second;
        };
        for (int left = 4; left > 0; --left) {
          const uint64_t index = choose() % record_count;
          uint64_t value = choose();
          Status one = Status::ok;
          switch (choose() % 5) {
            case 0:
            case 1:
              one = array.get(txn, index, &value);
              if (one == Status::ok && value != value_of(index)) problem = "get: wrong value";
              break;
            case 2:
              one = array.update(txn, index, 0, sizeof value, &value);
              after[index] = value;
              break;
            case 3:
              value %= 1000;
              one = array.increment(txn, index, 0, IncrementType::u64, &value);
              after[index] = value_of(index) + value;
              break;
            default: {
              uint64_t indexes[3];
              uint64_t values[3];
              for (uint64_t& each : indexes) each = choose() % record_count;
              one = array.get_many(txn, indexes, values);
              for (int k = 0; k < 3 && one == Status::ok; ++k) {
                if (values[k] != value_of(indexes[k])) problem = "get_many: wrong value";
              }
            }
          }
          if (one != Status::ok) return one;
        }
        return Status::ok;
      });
      if (status != Status::ok) return "transaction ended with " + std::string(to_string(status));
      now = std::move(after);
    }
    std::vector<GleanedLog> logs;
    for (const auto& [index, value] : now) {
      const auto old = model.find(index);
      if (old != model.end() && old->second == value) continue;
      logs.push_back({LogType::update, big_endian(index), 0,
                      std::string(reinterpret_cast<const char*>(&value), sizeof value),
                      Vid::make(cold.next_epoch(), 1)});
    }
    if (problem.empty()) problem = cold.take(std::move(logs));
    model = std::move(now);
  }
  return problem;
}

/// Appends to and scans a sequential storage. A scan must find all records ever appended, in order.
inline std::string cold_sequential_oracle(uint64_t rounds, uint64_t appends) {
  std::mt19937_64 random(seed());
  SnapshotStage stage(StorageType::sequential);
  std::vector<std::string> all;
  for (uint64_t round = 0; round < rounds; ++round) {
    ColdCluster cold(stage, 1);
    const Sequential heap(cold.storage);
    std::vector<std::string> fresh;
    const auto scan = [&]() -> std::string {
      std::vector<std::string> found;
      const Status status = cold.cluster.worker(0).run([&](Transaction& txn) {
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
      if (status != Status::ok) return "scan ended with " + std::string(to_string(status));
      std::vector<std::string> wanted = all;
      wanted.insert(wanted.end(), fresh.begin(), fresh.end());
      return found == wanted ? ""
                             : "a scan found " + std::to_string(found.size()) + " of " +
                                   std::to_string(wanted.size()) + " records, or wrong ones";
    };
    std::string problem = scan();
    for (uint64_t i = 0; i < appends && problem.empty(); ++i) {
      const std::string payload(random() % 300, static_cast<char>('a' + random() % 26));
      const Status status = cold.cluster.worker(0).run(
          [&](Transaction& txn) { return heap.append(txn, bytes_of(payload)); });
      if (status != Status::ok) return "append ended with " + std::string(to_string(status));
      fresh.push_back(payload);
    }
    if (problem.empty()) problem = scan();
    std::vector<GleanedLog> logs;
    for (uint64_t i = 0; i < fresh.size(); ++i) {
      const uint64_t epoch = cold.next_epoch() - fresh.size() + i;
      logs.push_back({LogType::append, big_endian(epoch) + std::string(8, '\0'), 0, fresh[i],
                      Vid::make(epoch, 1)});
    }
    if (problem.empty()) problem = cold.take(std::move(logs));
    if (!problem.empty()) return problem + " in round " + std::to_string(round);
    all.insert(all.end(), fresh.begin(), fresh.end());
  }
  return {};
}

/// R4: a transaction reads below a pointer to a snapshot page. Before it commits, another
/// transaction copies that page up and changes the record. Source: [FOEDUS15] Algorithm 2.
inline std::string cold_read_then_foreign_copy_up() {
  SnapshotStage stage(StorageType::mastertree);
  {
    ColdCluster cold(stage, 1);
    const std::string problem =
        cold.take({{LogType::insert, "key", 0, "old", Vid::make(cold.next_epoch(), 1)}});
    if (!problem.empty()) return problem;
  }
  ColdCluster cold(stage, 2);
  const MasterTree tree(cold.storage);
  Transaction& reader = *cold.cluster.worker(0).transaction;
  if (reader.begin() != Status::ok) return "no transaction";
  char buffer[8];
  uint32_t length = 0;
  if (tree.get(reader, bytes_of("key"), buffer, sizeof buffer, length) != Status::ok ||
      std::string(buffer, length) != "old") {
    return "the snapshot's record is not read";
  }
  if (reader.pointer_set_size() != 1) return "the pointer was not registered";
  if (cold.cluster.metrics(0, 0).snapshot_reads.get() == 0) return "the look-up was not counted";
  const Status written = cold.cluster.worker(1).run(
      [&](Transaction& txn) { return tree.update(txn, bytes_of("key"), bytes_of("new")); });
  if (written != Status::ok) return "the update ended with " + std::string(to_string(written));
  const Status status = reader.commit();
  return status == Status::pointer_installed ? "" : "the reader's commit passed";
}

/// A page that is copied up for a write keeps the versions of its commits (R36). Its newest removed
/// version is the epoch of the snapshot (R43).
inline std::string copy_up_keeps_versions() {
  SnapshotStage stage(StorageType::mastertree);
  constexpr uint64_t kEarlier = 77;  // epoch of the commits, earlier than the snapshot
  {
    ColdCluster cold(stage, 1);
    const std::string problem =
        cold.take({{LogType::insert, "a", 0, "old", Vid::make(kEarlier, 5)},
                   {LogType::insert, "b", 0, "old", Vid::make(kEarlier, 6)}});
    if (!problem.empty()) return problem;
  }
  ColdCluster cold(stage, 1);
  const MasterTree tree(cold.storage);
  std::string problem;
  const Status status = cold.cluster.worker(0).run([&](Transaction& txn) {
    problem.clear();
    Status one = tree.update(txn, bytes_of("a"), bytes_of("new"));
    char buffer[8];
    uint32_t length = 0;
    RecordRef ref;
    if (one == Status::ok) {
      one = tree.get_for_update(txn, bytes_of("b"), buffer, sizeof buffer, length, ref);
    }
    if (one != Status::ok) return one;
    if (ref.record->load_acquire() != Vid::make(kEarlier, 6)) problem = "another version";
    const Vid removed_vid(page_of(ref.record)->max_removed_vid.load(std::memory_order_relaxed));
    if (removed_vid.epoch() != stage.epoch)
      problem = "newest removed version " + std::to_string(removed_vid.epoch());
    return Status::ok;
  });
  if (status != Status::ok) return "the transaction ended with " + std::string(to_string(status));
  return problem;
}

/// A page of a snapshot has slots for its free room, so its volatile copy takes an insert.
inline std::string an_insert_fits_in_a_copied_page() {
  SnapshotStage stage(StorageType::mastertree);
  {
    ColdCluster cold(stage, 1);
    const std::string problem =
        cold.take({{LogType::insert, "a", 0, "old", Vid::make(cold.next_epoch(), 1)}});
    if (!problem.empty()) return problem;
  }
  ColdCluster cold(stage, 1);
  const MasterTree tree(cold.storage);
  const PageHeader* copied = nullptr;
  const PageHeader* into = nullptr;
  const Status status = cold.cluster.worker(0).run([&](Transaction& txn) {
    const auto page_with = [&](const char* key, const PageHeader*& page) {
      char buffer[8];
      uint32_t length = 0;
      RecordRef ref;
      const Status found =
          tree.get_for_update(txn, bytes_of(key), buffer, sizeof buffer, length, ref);
      if (found == Status::ok) page = page_of(ref.record);
      return found;
    };
    Status one = tree.update(txn, bytes_of("a"), bytes_of("new"));
    if (one == Status::ok) one = page_with("a", copied);
    if (one == Status::ok) one = tree.insert(txn, bytes_of("b"), bytes_of("new"));
    return one == Status::ok ? page_with("b", into) : one;
  });
  if (status != Status::ok) return "the transaction ended with " + std::string(to_string(status));
  return into == copied ? "" : "the insert replaced the copied page";
}

/// A scan of a cold tree registers one pointer, however many pages it reads. Source: [FOEDUS15]
/// section 6.2.
inline std::string cold_scan_registers_one_pointer() {
  SnapshotStage stage(StorageType::mastertree);
  constexpr uint64_t kRecords = 3000;
  {
    ColdCluster cold(stage, 1);
    std::vector<GleanedLog> logs;
    for (uint64_t i = 0; i < kRecords; ++i) {
      logs.push_back(
          {LogType::insert, big_endian(i), 0, "payload", Vid::make(cold.next_epoch(), 1)});
    }
    const std::string problem = cold.take(std::move(logs));
    if (!problem.empty()) return problem;
  }
  ColdCluster cold(stage, 1);
  Transaction& txn = *cold.cluster.worker(0).transaction;
  if (txn.begin() != Status::ok) return "no transaction";
  MasterTreeCursor cursor(MasterTree(cold.storage), txn, {}, true);
  uint64_t found = 0;
  while (cursor.next() == Status::ok) ++found;
  if (found != kRecords) return "the scan found " + std::to_string(found) + " records";
  if (txn.pointer_set_size() != 1) {
    return std::to_string(txn.pointer_set_size()) + " pointers are registered";
  }
  if (txn.read_set_size() != 0 || txn.page_version_set_size() != 0) return "more is registered";
  return txn.commit() == Status::ok ? "" : "the commit failed";
}

/// R39: between two steps of a scan, its transaction reads many other pages. When the scan
/// continues, its page is in another frame or in none.
inline std::string a_scan_continues_though_its_page_was_evicted() {
  SnapshotStage stage(StorageType::mastertree);
  constexpr uint64_t kRecords = 4000;
  const auto payload_of = [](uint64_t i) { return std::string(100, '.') + std::to_string(i); };
  {
    ColdCluster cold(stage, 1);
    std::vector<GleanedLog> logs;
    for (uint64_t i = 0; i < kRecords; ++i) {
      logs.push_back(
          {LogType::insert, big_endian(i), 0, payload_of(i), Vid::make(cold.next_epoch(), 1)});
    }
    const std::string problem = cold.take(std::move(logs));
    if (!problem.empty()) return problem;
  }
  ColdCluster cold(stage, 1);
  const MasterTree tree(cold.storage);
  Transaction& txn = *cold.cluster.worker(0).transaction;
  if (txn.begin() != Status::ok) return "no transaction";
  MasterTreeCursor cursor(tree, txn, {}, true);
  std::array<char, 128> buffer;
  const auto is_payload = [&](uint64_t i, uint32_t length) {
    return std::string_view(buffer.data(), length) == payload_of(i);
  };
  const auto read_much = [&] {
    for (uint64_t i = 0; i < kRecords; i += 50) {
      uint32_t length = 0;
      const Status status =
          tree.get(txn, bytes_of(big_endian(i)), buffer.data(), buffer.size(), length);
      if (status != Status::ok || !is_payload(i, length)) return false;
    }
    return true;
  };
  for (uint64_t i = 0; i < 100; ++i) {
    if (cursor.next() != Status::ok) return "the scan ended";
    // Reads many other pages, which evicts the page of the scan: before the payload is read, or
    // before the next step of the scan.
    if (i % 2 == 0 && !read_much()) return "a record is not read";
    if (cursor.get(buffer.data(), buffer.size()) != Status::ok) return "the scan cannot read";
    const bool is_it = std::ranges::equal(cursor.key(), bytes_of(big_endian(i)));
    if (!is_it || !is_payload(i, cursor.payload_bytes())) return "the scan has lost its page";
    if (i % 2 != 0 && !read_much()) return "a record is not read";
  }
  return txn.commit() == Status::ok ? "" : "the commit failed";
}

}  // namespace atolldb::test
