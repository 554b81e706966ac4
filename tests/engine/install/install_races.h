// Bodies of tests in which other workers change, move or drop what an installer is about to read. A
// body returns an error text, or an empty text if all is right. Every run takes the same steps.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/install/drop_rules.h"
#include "tests/engine/install/tree_drop_rules.h"

namespace atolldb::test {

/// A tree of one border page with its own records and a layer of four records, `a` to `d`. The
/// layer is cold: it is in the first snapshot only. A second snapshot with the same content is
/// ready to be installed.
class ColdLayerTree {
 public:
  explicit ColdLayerTree(uint32_t workers) : warm(workers), tree(warm.storage) {}

  std::string fill() {
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < 20; ++i) keys.push_back(big_endian(2 * i));
    for (const char* rest : {"a", "b", "c", "d"}) keys.push_back(layered(rest));
    const Status status = run(0, [&](Transaction& txn) {
      Status one = Status::ok;
      for (size_t i = 0; i < keys.size() && one == Status::ok; ++i) {
        one = tree.insert(txn, bytes_of(keys[i]), bytes_of("old"));
      }
      return one;
    });
    if (status != Status::ok) return "the inserts ended with " + std::string(to_string(status));
    std::vector<GleanedLog> logs;
    const uint64_t epoch = warm.settle();
    for (const std::string& key : keys) {
      logs.push_back({LogType::insert, key, 0, "old", Vid::make(epoch, 1)});
    }
    std::string problem = warm.take(std::move(logs), epoch, 0);
    if (problem.empty()) problem = warm.install(drop_all);
    if (problem.empty() && warm.report.dropped != 1) problem = "the layer has not gone";
    warm.stage.rewrites = true;
    return problem.empty() ? warm.take({}, warm.settle(), 0) : problem;
  }
  Status update(uint32_t worker, const char* rest, const std::string& value) {
    return run(worker, [&](Transaction& txn) {
      return tree.update(txn, bytes_of(layered(rest)), bytes_of(value));
    });
  }
  /// Inserts between existing records until their page is split.
  bool split(uint32_t worker) {
    const WorkerMetrics& metrics = warm.cluster.metrics(0, worker);
    const uint64_t before = metrics.splits.get();
    for (uint64_t i = 1; i < 2000 && metrics.splits.get() == before; ++i) {
      const Status status = run(worker, [&](Transaction& txn) {
        return tree.insert(txn, bytes_of(big_endian(1000 + i)), bytes_of("new"));
      });
      if (status != Status::ok) return false;
    }
    return metrics.splits.get() != before;
  }
  std::string value_of(const char* rest) {
    std::string value;
    const Status status = run(0, [&](Transaction& txn) {
      return DroppableTree::read_key(txn, tree, layered(rest), value);
    });
    return status == Status::ok ? value : std::string(to_string(status));
  }

  WarmTree warm;
  MasterTree tree;

 private:
  static std::string layered(const std::string& rest) { return big_endian(500) + rest; }
  template <typename Body>
  Status run(uint32_t worker, Body&& body) {
    const Status status = warm.cluster.worker(worker).run(body);
    warm.cluster.worker(worker).context->leave();
    return status;
  }
};

/// R3: a border page splits after an installer has checked it, and before the installer locks it.
/// The page has a frozen pointer to a layer, which must stay frozen. Two writers are in the page,
/// about to follow the pointer. If the installer thawed the pointer, the first writer would store a
/// copy of the layer there. The second would write to that copy, which no other reader finds.
inline std::string nothing_is_installed_in_moved_pages() {
  // As long as the old values, so that the records need no new page.
  constexpr const char* kFirst = "one";
  constexpr const char* kSecond = "two";
  ColdLayerTree test(3);
  std::string problem = test.fill();
  if (!problem.empty()) return problem;
  uint32_t depth = 0;     // nesting depth of the operations
  uint32_t descents = 0;  // descents of the current operation; the second one enters the layer
  bool is_split = false;
  Status first = Status::user_abort;
  const AtSyncPoints guard([&](SyncPoint point) {
    if (depth < 2 && point == SyncPoint::descending && ++descents == 2) {
      descents = 0;
      if (++depth == 1) {
        first = test.update(0, "a", kFirst);
      } else {
        problem = test.warm.install(keep_all);
      }
    } else if (depth == 2 && point == SyncPoint::found_layers) {
      ++depth;
      is_split = test.split(2);
    }
  });
  const Status second = test.update(1, "b", kSecond);
  if (!problem.empty()) return problem;
  if (!is_split) return "the page was not split";
  if (first != Status::ok || second != Status::ok) return "no update";
  if (test.value_of("a") != kFirst) return "the first commit was lost";
  return test.value_of("b") == kSecond ? "" : "the second commit was lost";
}

/// R2: a reader that sees that a page was dropped finds the snapshot page beside the pointer.
inline std::string what_stands_for_a_page_is_there_before_it_goes() {
  DroppableTree test(1);
  std::string problem = test.fill();
  if (!problem.empty()) return problem;
  std::string read = "no read";
  {
    // The page of key 0 is the first page that is dropped.
    const AtFirst at_point(SyncPoint::dropped, [&] { read = test.value_of(0); });
    problem = test.warm.install(drop_all);
  }
  if (!problem.empty()) return problem;
  return read == "old" ? "" : "a record in a page that was just dropped: " + read;
}

/// Two keys share a slice and form a volatile layer. Then one of them is erased. An old transaction
/// needs the tombstone (R10). Therefore the layer keeps two records, and neither can take the slot
/// of the layer (R70). The layer and the page above it can be dropped.
inline std::string a_layer_of_one_record_is_dropped(bool first_lives) {
  WarmTree warm(2);
  warm.cluster.worker(1).context->enter();
  const MasterTree tree(warm.storage);
  const std::string living = big_endian(5) + (first_lives ? "a" : "b");
  const std::string dead = big_endian(5) + (first_lives ? "b" : "a");
  const auto run = [&](auto&& body) {
    const Status status = warm.cluster.worker(0).run(body);
    warm.cluster.worker(0).context->leave();
    return status;
  };
  Status status = run([&](Transaction& txn) {
    const Status one = tree.insert(txn, bytes_of(living), bytes_of("old"));
    return one == Status::ok ? tree.insert(txn, bytes_of(dead), bytes_of("old")) : one;
  });
  if (status == Status::ok) {
    status = run([&](Transaction& txn) { return tree.erase(txn, bytes_of(dead)); });
  }
  if (status != Status::ok) return "filling ended with " + std::string(to_string(status));
  const uint64_t epoch = warm.settle();
  std::string problem = warm.take({{LogType::insert, living, 0, "old", Vid::make(epoch, 1)},
                                   {LogType::erase, dead, 0, "", Vid::make(epoch, 2)}},
                                  epoch, 0);
  if (problem.empty()) problem = warm.install(drop_all);
  TreeStatistics statistics;
  if (problem.empty()) problem = warm.check(statistics);
  if (!problem.empty()) return problem;
  if (statistics.border_pages != 1) return "a layer of one record stays";
  std::string value;
  const auto read = [&](Transaction& txn) {
    return DroppableTree::read_key(txn, tree, living, value);
  };
  if (run(read) != Status::ok || value != "old") return "the record is not read";
  status =
      run([&](Transaction& txn) { return tree.update(txn, bytes_of(living), bytes_of("new")); });
  if (status != Status::ok || run(read) != Status::ok) return "no update";
  warm.cluster.worker(1).context->leave();
  return value == "new" ? "" : "the update is not read";
}

/// R9: a slow installer publishes its begin epoch again and again. Retired pages wait only until
/// the installer has finished its current path.
inline std::string a_slow_installer_holds_no_epoch() {
  DroppableTree test(1);
  std::string problem = test.fill();
  if (!problem.empty()) return problem;
  const ClusterView& view = test.warm.cluster.view();
  const std::atomic<uint64_t>& begin = view.shared[0]->slot(1).begin_epoch;
  uint64_t last = 0;
  uint64_t drops = 0;
  uint64_t held = 0;
  {
    const AtSyncPoints guard([&](SyncPoint point) {
      if (point != SyncPoint::dropped) return;
      ++drops;
      held += begin.load(std::memory_order_seq_cst) < last ? 1 : 0;
      const std::atomic<uint64_t>& current = view.control->epochs.current;
      const uint64_t now = current.load(std::memory_order_seq_cst);
      while (current.load(std::memory_order_seq_cst) == now) std::this_thread::yield();
      last = now + 1;
    });
    problem = test.warm.install(drop_all);
  }
  if (!problem.empty()) return problem;
  if (drops < 5) return "hardly anything was dropped";
  return held == 0 ? "" : std::to_string(held) + " drops within an epoch that was long over";
}

/// Simulates that the storage is dropped while it is in use, or that another storage takes its
/// catalog slot.
inline void hide(StorageControl& storage, bool reused) {
  if (reused) storage.id += kMaxStorages;
  storage.state.store(static_cast<uint32_t>(reused ? StorageState::ready : StorageState::dropping),
                      std::memory_order_seq_cst);
}

/// R34: a storage is dropped, or its catalog slot is reused, just after the installer has published
/// its begin epoch. The installer must no longer access its pages.
inline std::string a_dropped_storage_is_left_alone(StorageType type, bool reused) {
  InstallReport report;
  std::string problem;
  const auto install = [&](WarmCluster& warm) {
    warm.cluster.tick();
    warm.cancelled = [&] {
      hide(warm.storage, reused);
      return false;
    };
    return warm.install(report);
  };
  if (type == StorageType::mastertree) {
    DroppableTree test(1);
    problem = test.fill();
    if (!problem.empty()) return problem;
    test.warm.cancelled = [&] {
      hide(test.warm.storage, reused);
      return false;
    };
    problem = test.warm.install(drop_all);
    report = test.warm.report;
  } else if (type == StorageType::array) {
    DropStage test;
    test.fill(0, 1);
    test.cluster.tick();
    problem = test.snapshot(test.settled());
    if (problem.empty()) problem = install(test);
  } else {
    WarmHeap test(2, false);
    for (int i = 0; i < 30; ++i) {
      if (test.append(0, 4) != Status::ok) return "appending";
    }
    test.cluster.tick();
    problem = test.snapshot(test.settled());
    if (problem.empty()) problem = install(test);
  }
  if (!problem.empty()) return problem;
  return report.installed + report.unmatched + report.dropped == 0 ? ""
                                                                   : "its pages were looked at";
}

}  // namespace atolldb::test
