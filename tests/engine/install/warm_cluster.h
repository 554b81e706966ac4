// A cluster in one process. Snapshots are taken and installed while its transactions run. The
// workers' commits are recorded in a log of the test, composed, and installed by an additional
// worker.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/array/array.h"
#include "engine/format/array_page.h"
#include "engine/install/install.h"
#include "engine/sequential/sequential.h"
#include "tests/engine/compose/snapshot_stage.h"
#include "tests/engine/snapshot/cache_rules.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

/// Log of committed changes. The log knows the epoch up to which it is complete.
template <typename Change>
class CommitLog {
 public:
  explicit CommitLog(uint32_t workers) : quiet_from_(workers) {
    for (auto& epoch : quiet_from_) epoch.store(kIdleEpoch, std::memory_order_relaxed);
  }

  /// Called before a transaction, whose commit is in `epoch` or later.
  void begin(uint32_t worker, uint64_t epoch) {
    quiet_from_[worker].store(epoch, std::memory_order_seq_cst);
  }
  void end(uint32_t worker) { quiet_from_[worker].store(kIdleEpoch, std::memory_order_seq_cst); }
  void add(const Change& change) {
    const std::lock_guard lock(mutex_);
    changes_.emplace(change.vid.version(), change);
  }
  /// Returns the epoch up to which the log has all changes. `settled`: the settled epoch of the
  /// cluster.
  uint64_t complete(uint64_t settled) const {
    for (const auto& epoch : quiet_from_) {
      settled = std::min(settled, epoch.load(std::memory_order_seq_cst) - 1);
    }
    return settled;
  }
  /// Removes and returns all changes up to this epoch, in the order of VIDs.
  std::vector<Change> take(uint64_t epoch) {
    std::vector<Change> taken;
    const std::lock_guard lock(mutex_);
    const auto later = changes_.lower_bound(Vid::make(epoch + 1, 0).word());
    for (auto at = changes_.begin(); at != later; ++at) taken.push_back(at->second);
    changes_.erase(changes_.begin(), later);
    return taken;
  }

 private:
  std::vector<std::atomic<uint64_t>> quiet_from_;
  mutable std::mutex mutex_;
  // Changes by version. Those of one commit are in the order in which they were added.
  std::multimap<uint64_t, Change> changes_;
};

inline DropVerdict drop_all(PageHeader&) { return DropVerdict::drop; }
inline DropVerdict keep_all(PageHeader&) { return DropVerdict::keep; }
/// Drops pages whose reference bit is not set, and clears the bits.
inline DropVerdict drop_cold(PageHeader& page) {
  return page.reference_bit.exchange(0, std::memory_order_relaxed) != 0 ? DropVerdict::keep_hot
                                                                        : DropVerdict::drop;
}
inline DropVerdict forget_marks(PageHeader& page) {
  page.reference_bit = 0;
  return DropVerdict::keep;
}
/// Drops the first `left` pages that the installer asks about.
inline std::function<DropVerdict(PageHeader&)> drop_some(int& left) {
  return [&left](PageHeader&) { return left-- > 0 ? DropVerdict::drop : DropVerdict::keep; };
}

/// A cluster of two nodes with one storage, and a stage that composes its snapshots. The last
/// worker is the installer.
class WarmCluster {
 public:
  WarmCluster(uint32_t workers_per_node, bool clock, StorageType type, uint64_t record_count = 0,
              uint32_t payload_bytes = 0)
      : stage(type, record_count, payload_bytes),
        cluster(2, workers_per_node, {.pool_bytes = uint64_t{16} << 20, .clock = clock}),
        storage(cluster.create("warm", type, payload_bytes, record_count)),
        cache_(stage.reader, 32, 2 * workers_per_node) {
    stage.storage.id = storage.id;
    cluster.use_snapshots(cache_.cache);
  }

  uint32_t writers() const { return cluster.worker_count() - 1; }
  TestWorker& installer() { return cluster.worker(cluster.worker_count() - 1); }
  uint64_t settled() {
    return cluster.view().control->epochs.settled.load(std::memory_order_acquire);
  }

  /// Runs a transaction of a worker, and then ends the worker's begin epoch. Workers on the same
  /// thread then wait for no volatile page and no frame of the cache that this worker holds.
  template <typename Body>
  Status run_alone(uint32_t worker, Body&& body) {
    TestWorker& self = cluster.worker(worker);
    const Status status = self.run(body);
    self.context->leave();
    return status;
  }

  /// Composes the next snapshot. Returns an error text, or an empty text.
  std::string compose(std::vector<GleanedLog> logs, uint64_t epoch) {
    sort_gleaned(logs);
    const auto combined = stage.round(logs, {""}, epoch);
    return combined ? "" : combined.error().message;
  }
  /// Installs the newest snapshot.
  std::string install(InstallReport& report) {
    InstallTask task;
    task.root = stage.storage.base_root;
    task.snapshot = stage.snapshot;
    task.epoch = stage.epoch;
    task.drop_policy = drop_policy;
    task.cancelled = cancelled;
    const Status status = install_snapshot(*installer().context, storage, task, report);
    return status == Status::ok ? "" : "installing: " + std::string(to_string(status));
  }

  SnapshotStage stage;
  TestCluster cluster;
  StorageControl& storage;
  std::function<DropVerdict(PageHeader&)> drop_policy = drop_all;
  std::function<bool()> cancelled = [] { return false; };

 private:
  TestCache cache_;
};

/// An array whose records begin with a number.
class WarmArray : public WarmCluster {
 public:
  struct Change {
    uint64_t index = 0;
    bool adds = false;
    int64_t value = 0;
    Vid vid = {};
  };

  WarmArray(uint32_t workers_per_node, bool clock, uint64_t record_count, uint32_t payload_bytes)
      : WarmCluster(workers_per_node, clock, StorageType::array, record_count, payload_bytes),
        array(storage),
        shape(record_count, payload_bytes),
        log(writers()) {}

  Status get(Transaction& txn, uint64_t index, int64_t& value) const {
    return array.get(txn, index, 0, sizeof value, &value);
  }
  Status change(Transaction& txn, const Change& change) const {
    return change.adds ? array.increment(txn, change.index, 0, IncrementType::i64, &change.value)
                       : array.update(txn, change.index, 0, sizeof change.value, &change.value);
  }
  /// Runs a transaction of blind writes.
  Status write(uint32_t worker, const std::vector<Change>& changes) {
    const Status status = run_alone(worker, [&](Transaction& txn) {
      Status one = Status::ok;
      for (size_t i = 0; i < changes.size() && one == Status::ok; ++i) {
        one = change(txn, changes[i]);
      }
      return one;
    });
    if (status == Status::ok) note(*cluster.worker(worker).transaction, changes);
    return status;
  }
  void note(const Transaction& txn, const std::vector<Change>& changes) {
    for (Change change : changes) {
      change.vid = txn.last_vid();
      log.add(change);
    }
  }
  int64_t read(uint32_t worker, uint64_t index) {
    int64_t value = 0;
    const Status status =
        run_alone(worker, [&](Transaction& txn) { return get(txn, index, value); });
    return status == Status::ok ? value : -1'000'000 - static_cast<int64_t>(status);
  }

  /// Composes a snapshot of all commits up to the epoch.
  std::string snapshot(uint64_t epoch) {
    std::map<uint64_t, Vid> changed;
    for (const Change& change : log.take(epoch)) {
      int64_t& value = values[change.index];
      value = change.adds ? value + change.value : change.value;
      changed[change.index] = change.vid;
    }
    std::vector<GleanedLog> logs;
    for (const auto& [index, vid] : changed) {
      logs.push_back({LogType::update, big_endian(index), 0,
                      std::string(reinterpret_cast<const char*>(&values[index]), sizeof(int64_t)),
                      vid});
    }
    return compose(std::move(logs), epoch);
  }
  /// Composes a snapshot of all commits, and installs it. REQUIRES: no transaction is under way.
  std::string snapshot_and_install(InstallReport& report) {
    cluster.tick();
    const std::string problem = snapshot(settled());
    return problem.empty() ? install(report) : problem;
  }

  /// Numbers of volatile pages per level, and the oldest snapshot that any pointer leads to.
  struct Pages {
    uint64_t leaves = 0;
    uint64_t interiors = 0;  // without the root
    uint32_t oldest_snapshot = InstallReport::kNoSnapshot;
  };
  Pages pages() {
    Pages found;
    count(storage.root, shape.levels - 1, found);
    if (shape.levels > 1 && !storage.root.load_acquire().is_null()) --found.interiors;
    return found;
  }

  Array array;
  ArrayShape shape;
  CommitLog<Change> log;
  std::map<uint64_t, int64_t> values;  // content of the newest snapshot

 private:
  void count(const DualPointer& pointer, uint32_t level, Pages& found) {
    const SnapshotPointer snapshot(pointer.snapshot_word.load(std::memory_order_acquire));
    if (!snapshot.is_null()) {
      found.oldest_snapshot = std::min(found.oldest_snapshot, snapshot.snapshot());
    }
    const VolatilePointer word = pointer.load_acquire();
    if (word.is_null()) return;
    ++(level == 0 ? found.leaves : found.interiors);
    if (level == 0) return;
    const auto* page = reinterpret_cast<const ArrayInterior*>(cluster.view().resolve(word));
    for (const DualPointer& child : page->children) count(child, level - 1, found);
  }
};

/// A sequential storage. Each record has the number of its worker, and its own number among the
/// appends of that worker.
class WarmHeap : public WarmCluster {
 public:
  struct Change {
    uint64_t worker = 0;
    uint64_t number = 0;
    Vid vid = {};
  };

  WarmHeap(uint32_t workers_per_node, bool clock)
      : WarmCluster(workers_per_node, clock, StorageType::sequential),
        heap(storage),
        log(writers()),
        appended(writers()) {}

  /// Appends `count` records in one transaction. The number of a record determines its length.
  Status append(uint32_t worker, uint32_t count) {
    const uint64_t first = appended[worker].load(std::memory_order_relaxed);
    const Status status = run_alone(worker, [&](Transaction& txn) {
      Status one = Status::ok;
      for (uint64_t i = first; i < first + count && one == Status::ok; ++i) {
        const std::vector<uint64_t> payload = payload_of(worker, i);
        one = heap.append(txn, std::as_bytes(std::span(payload)));
      }
      return one;
    });
    if (status != Status::ok) return status;
    const Vid vid = cluster.worker(worker).transaction->last_vid();
    for (uint64_t i = first; i < first + count; ++i) log.add({worker, i, vid});
    appended[worker].store(first + count, std::memory_order_release);
    return status;
  }

  /// Scans everything. Each worker's records must be in order from 0 on, and include all that were
  /// acknowledged before. Returns an error text, or an empty text.
  std::string scan(uint32_t worker, uint64_t& found) {
    std::vector<uint64_t> wanted;
    for (const auto& count : appended) wanted.push_back(count.load(std::memory_order_acquire));
    std::vector<uint64_t> next;
    std::string problem;
    const Status status = run_alone(worker, [&](Transaction& txn) {
      next.assign(writers(), 0);
      problem.clear();
      found = 0;
      SequentialCursor cursor(heap, txn);
      for (;; ++found) {
        const Status one = cursor.next();
        if (one == Status::end_of_scan) return Status::ok;
        if (one != Status::ok) return one;
        uint64_t head[2] = {};
        std::memcpy(head, cursor.payload().data(), sizeof head);
        if (head[0] >= writers() || head[1] != next[head[0]]) {
          if (problem.empty()) {
            problem = "record " + std::to_string(head[1]) + " of worker " +
                      std::to_string(head[0]) + " came for another one";
          }
          continue;
        }
        ++next[head[0]];
      }
    });
    if (status != Status::ok) return "the scan ended with " + std::string(to_string(status));
    for (uint32_t i = 0; i < writers() && problem.empty(); ++i) {
      if (next[i] < wanted[i]) {
        problem = "worker " + std::to_string(i) + ": " + std::to_string(next[i]) + " of " +
                  std::to_string(wanted[i]) + " records";
      }
    }
    return problem;
  }

  std::string snapshot(uint64_t epoch) {
    std::vector<GleanedLog> logs;
    for (const Change& change : log.take(epoch)) {
      const std::vector<uint64_t> payload = payload_of(change.worker, change.number);
      logs.push_back(
          {LogType::append,
           big_endian(change.vid.epoch()) + big_endian(change.worker << 40 | change.number), 0,
           std::string(reinterpret_cast<const char*>(payload.data()),
                       payload.size() * sizeof(uint64_t)),
           change.vid});
    }
    return compose(std::move(logs), epoch);
  }
  std::string snapshot_and_install(InstallReport& report) {
    cluster.tick();
    const std::string problem = snapshot(settled());
    return problem.empty() ? install(report) : problem;
  }

  /// Returns the number of pages in all lists.
  uint64_t pages() {
    const auto at = [&](const std::atomic<uint64_t>& word) -> PageHeader* {
      const VolatilePointer pointer(word.load(std::memory_order_acquire));
      return pointer.is_null() ? nullptr : cluster.view().resolve(pointer);
    };
    uint64_t count = 0;
    auto* root = reinterpret_cast<SequentialDirectory*>(at(storage.root.volatile_word));
    if (root == nullptr) return 0;
    for (const auto& node : root->entries) {
      auto* lists = reinterpret_cast<SequentialDirectory*>(at(node));
      if (lists == nullptr) continue;
      for (const auto& word : lists->entries) {
        auto* list = reinterpret_cast<SequentialListHead*>(at(word));
        if (list == nullptr) continue;
        auto* page = reinterpret_cast<SequentialPage*>(at(list->first));
        for (; page != nullptr; ++count) page = reinterpret_cast<SequentialPage*>(at(page->next));
      }
    }
    return count;
  }

  Sequential heap;
  CommitLog<Change> log;
  std::vector<std::atomic<uint64_t>> appended;  // number of appends per worker

 private:
  static std::vector<uint64_t> payload_of(uint64_t worker, uint64_t number) {
    std::vector<uint64_t> words(2 + number % 40, number);
    words[0] = worker;
    return words;
  }
};

}  // namespace atolldb::test
