// Rules of reclaiming after deletes: eliding tombstones, newest removed versions, compaction and
// merging (R10, R43, R45, R46). A body returns an error text, or an empty text if all is right.
// Needs the engine with sync points (`ATOLL_MUTANTS`).
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "engine/mastertree/descent.h"
#include "engine/mastertree/inspect.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// Three workers of one node, a tree, and an array `marks`. A writer may also set a mark in the
/// transaction under test. A reader that finds the mark must not commit if it has missed the other
/// writes of that transaction. Worker `keeper` erases, and processes its hints only in
/// `work_off_hints`.
class Reclaim {
 public:
  Reclaim()
      : cluster_(1, 3, options()),
        marks_(Kind::array, cluster_.create("marks", StorageType::array, 8, 10)),
        table_(Kind::tree, cluster_.create("tree", StorageType::mastertree, 8)) {}

  Transaction& keeper() { return *cluster_.worker(0).transaction; }
  Transaction& writer() { return *cluster_.worker(1).transaction; }
  Transaction& reader() { return *cluster_.worker(2).transaction; }
  const Table& table() const { return table_; }
  const Table& marks() const { return marks_; }
  TestCluster& cluster() { return cluster_; }
  StorageControl& storage() { return table_.tree().storage(); }
  uint64_t compactions() { return cluster_.metrics(0, 0).compactions.get(); }
  uint64_t merges() { return cluster_.metrics(0, 0).merges.get(); }

  template <typename Body>
  void commit(Transaction& txn, Body&& body) {
    CHECK(txn.begin() == Status::ok);
    const Status status = body(txn);
    CHECK(status == Status::ok || status == Status::not_found);
    CHECK(txn.commit() == Status::ok);
  }
  /// Inserts the keys first, first + step ... below `end`.
  void insert(Transaction& txn, uint64_t first, uint64_t end, uint64_t step = 1) {
    for (uint64_t key = first; key < end; key += step) {
      commit(txn, [&](Transaction& one) { return table_.insert(one, key, key); });
    }
  }
  void erase(uint64_t first, uint64_t end, uint64_t step = 1) {
    for (uint64_t key = first; key < end; key += step) {
      commit(keeper(), [&](Transaction& one) { return table_.erase(one, key); });
    }
  }
  /// Lets the grace period of tombstones pass. Afterwards their hints are due.
  void let_grace_pass() {
    for (uint32_t i = 0; i < cluster_.worker_count(); ++i) {
      if (!cluster_.worker(i).transaction->is_active()) cluster_.worker(i).context->leave();
    }
    for (int i = 0; i < 6; ++i) cluster_.tick();
  }
  void work_off_hints() {
    HintQueue& hints = keeper().worker().hints();
    while (hints.is_due(keeper().worker().current_epoch())) run_hints(keeper().worker());
  }
  bool has(uint64_t key) {
    uint64_t value = 0;
    bool found = false;
    commit(writer(), [&](Transaction& txn) {
      const Status status = table_.get(txn, key, value);
      found = status == Status::ok;
      return status;
    });
    return found;
  }
  BorderPage* page_with(uint64_t slice) {
    writer().worker().enter();
    return find_border(writer().worker(), storage(), root_link(storage()), slice).page;
  }
  uint64_t removed_vid_at(uint64_t key) {
    const auto bytes = ordered_key(key);
    return page_with(slice_of(bytes))->header.max_removed_vid.load(std::memory_order_relaxed);
  }
  /// Number of keys of a run of more than ten adjacent pages. `make_empty_run` leaves only old
  /// tombstones in these pages.
  static constexpr uint64_t kRun = 1200;
  void make_empty_run() {
    insert(keeper(), 0, kRun);
    erase(0, kRun);
    let_grace_pass();
  }

 private:
  static TestClusterOptions options() {
    TestClusterOptions options{.clock = false};
    options.pool_bytes = uint64_t{16} << 20;
    return options;
  }
  TestCluster cluster_;
  Table marks_;
  Table table_;
};

/// R10: a compaction does not elide a record that a transaction has reserved and not yet written.
inline std::string a_reservation_survives_a_compaction() {
  Reclaim stage;
  Problem problem;
  stage.insert(stage.keeper(), 0, 10);
  stage.erase(0, 8);
  stage.let_grace_pass();
  Transaction& writer = stage.writer();
  problem.expect(writer.begin(), Status::ok, "begin");
  problem.expect(stage.table().insert(writer, 20, 20), Status::ok, "insert");
  stage.work_off_hints();
  problem.expect(stage.compactions() == 1, "the page was not compacted");
  problem.expect(writer.commit(), Status::ok, "commit of an insert amid a compaction");
  problem.expect(stage.has(20), "the insert is lost");
  return problem.text();
}

/// R10, R15: a split does not elide a record that was erased in this epoch, so that the key's next
/// VID is larger.
inline std::string vids_grow_over_a_split() {
  Reclaim stage;
  Problem problem;
  stage.insert(stage.keeper(), 5, 6);
  for (uint64_t i = 0; i < 5; ++i) {
    stage.commit(stage.keeper(), [&](Transaction& txn) { return stage.table().put(txn, 5, i); });
  }
  stage.erase(5, 6);
  const Vid erased = stage.keeper().last_vid();
  stage.commit(stage.writer(), [&](Transaction& txn) {
    Status status = Status::ok;
    for (uint64_t key = 1000; key < 1200 && status == Status::ok; ++key) {
      status = stage.table().insert(txn, key, key);
    }
    return status;
  });
  problem.expect(stage.cluster().metrics(0, 1).splits.get() != 0, "the page was not split");
  stage.insert(stage.reader(), 5, 6);
  problem.expect(stage.reader().last_vid().version() > erased.version(),
                 "the key's VID is smaller than that of its erase");
  return problem.text();
}

/// R43: the newest removed version of a page covers the records that a compaction has elided.
inline std::string removed_versions_cover_what_was_elided() {
  Reclaim stage;
  Problem problem;
  stage.insert(stage.keeper(), 0, 10);
  stage.erase(0, 8);
  const uint64_t erased = stage.keeper().last_vid().version();
  stage.let_grace_pass();
  stage.work_off_hints();
  problem.expect(stage.compactions() == 1, "the page was not compacted");
  problem.expect(stage.removed_vid_at(5) >= erased,
                 "a newest removed version below what a compaction elided");
  return problem.text();
}

/// R43: both pages of a split inherit the newest removed version.
inline std::string removed_versions_are_inherited_by_splits() {
  Reclaim stage;
  Problem problem;
  stage.insert(stage.keeper(), 0, 10);
  const uint64_t removed_vid = Vid::make(1, 77).version();
  stage.page_with(0)->header.max_removed_vid.store(removed_vid, std::memory_order_relaxed);
  stage.insert(stage.keeper(), 10, 300);
  problem.expect(stage.removed_vid_at(0) >= removed_vid,
                 "a split's left page has a lower newest removed version");
  problem.expect(stage.removed_vid_at(299) >= removed_vid,
                 "a split's right page has a lower newest removed version");
  return problem.text();
}

/// R43: keys that the page has elided may be inserted again into the layer, so the layer inherits
/// the newest removed version.
inline std::string removed_versions_are_inherited_by_layers() {
  Reclaim stage;
  Problem problem;
  const MasterTree tree = stage.table().tree();
  const std::string first = "prefix01-one";
  const std::string second = "prefix01-two";
  const auto insert = [&](const std::string& key) {
    stage.commit(stage.keeper(), [&](Transaction& txn) {
      return tree.insert(txn, bytes_view(key.data(), key.size()), {});
    });
  };
  insert(first);
  BorderPage* page = stage.page_with(0);
  const uint64_t removed_vid = Vid::make(1, 77).version();
  page->header.max_removed_vid.store(removed_vid, std::memory_order_relaxed);
  insert(second);
  problem.expect(page->record(0)->head.load_acquire().is_next_layer(), "no layer was made");
  const TreePage* root =
      tree_page(stage.cluster().view().resolve(page->record(0)->next_layer()->load_acquire()));
  problem.expect(root->header.max_removed_vid.load(std::memory_order_relaxed) >= removed_vid,
                 "a layer's newest removed version is lower than that of the page it comes from");
  return problem.text();
}

/// R43: a merged page inherits the newest removed version from all its predecessors. The last page
/// of a tree inherits it from the root that it replaces.
inline std::string removed_versions_are_inherited_by_merged_pages() {
  Reclaim stage;
  Problem problem;
  TreeStatistics statistics;
  uint64_t keys = 0;
  for (; statistics.border_pages < kMinMergeRun; statistics = {}) {
    stage.insert(stage.keeper(), keys, keys + 1);
    ++keys;
    problem.expect(check_tree(stage.cluster().view(), stage.storage(), statistics) == "", "check");
    if (statistics.border_pages >= kMinMergeRun) break;
  }
  stage.erase(0, keys);
  stage.let_grace_pass();
  const uint64_t erased = stage.keeper().last_vid().version();
  TreePage* root = tree_page(stage.cluster().view().resolve(stage.storage().root.load_acquire()));
  problem.expect(!root->is_border(), "the tree has one page only");
  const uint64_t removed_vid = Vid::make(1, Vid::kMaxOrdinal).version();
  problem.expect(removed_vid > erased, "the newest removed version is not the largest of all");
  // The newest removed version that a dropped page below the root would leave (R8).
  root->header.max_removed_vid.store(removed_vid, std::memory_order_relaxed);
  stage.work_off_hints();
  problem.expect(stage.merges() != 0, "nothing was merged");
  const TreePage* last =
      tree_page(stage.cluster().view().resolve(stage.storage().root.load_acquire()));
  problem.expect(last->is_border(), "the tree did not shrink to one page");
  problem.expect(last->header.max_removed_vid.load(std::memory_order_relaxed) >= removed_vid,
                 "a replaced root took its newest removed version with it");
  return problem.text();
}

/// R44: a merged page has no snapshot page, because the old ones do not cover its range.
inline std::string a_merge_forgets_the_snapshot_pages() {
  Reclaim stage;
  Problem problem;
  stage.make_empty_run();
  stage.insert(stage.keeper(), Reclaim::kRun, Reclaim::kRun + 1);  // keeps the root
  const auto root = [&] {
    return interior_page(
        tree_page(stage.cluster().view().resolve(stage.storage().root.load_acquire())));
  };
  // Sets the snapshot words after the compactions, and before the merge copies the children.
  const AtFirst at_point(SyncPoint::found_run, [&] {
    InteriorPage* page = root();
    for (uint32_t i = 0; i < page->header.version().count(); ++i) {
      page->children[i].snapshot_word.store(77, std::memory_order_relaxed);
    }
  });
  stage.work_off_hints();
  problem.expect(at_point.was_reached(), "no run of empty pages was found");
  problem.expect(stage.merges() != 0, "nothing was merged");
  problem.expect(root()->header.version().count() > 1, "the root was replaced");
  problem.expect(root()->children[0].snapshot_word.load(std::memory_order_relaxed) == 0,
                 "the merged page's slot has a snapshot page");
  return problem.text();
}

/// R9: a page that a worker remembers may be reused for another purpose in a later epoch.
inline std::string what_a_worker_remembers_ends_with_its_epoch() {
  Reclaim stage;
  Problem problem;
  stage.insert(stage.keeper(), 5, 6);
  problem.expect(stage.has(5), "the key is missing");  // the writer now remembers the page
  const PageHeader* page = &stage.page_with(0)->header;
  stage.insert(stage.keeper(), 1000, 1200);
  problem.expect(page->version().is_moved(), "the page was not replaced");
  stage.let_grace_pass();
  stage.keeper().worker().enter();
  bool used_again = false;
  for (int i = 0; i < 100 && !used_again; ++i) {
    StorageControl& other =
        stage.cluster().create("other" + std::to_string(i), StorageType::mastertree, 8);
    const Table table(Kind::tree, other);
    stage.commit(stage.keeper(), [&](Transaction& txn) { return table.insert(txn, 7, 7); });
    used_again = stage.cluster().view().resolve(other.root.load_acquire()) == page;
  }
  problem.expect(used_again, "the page was not used again");
  problem.expect(stage.has(5), "looked into the page of another tree");
  return problem.text();
}

/// A tree with two keys of a next layer between two keys of the first layer. Bodies erase some of
/// them.
class Layered : public Reclaim {
 public:
  Layered() {
    for (const std::string& key : keys_) {
      put(keeper(), key);
    }
  }
  const std::string& key(size_t i) const { return keys_[i]; }
  void put(Transaction& txn, const std::string& key) {
    commit(txn, [&](Transaction& one) { return insert(one, key); });
  }
  Status insert(Transaction& txn, const std::string& key) const {
    return table().tree().insert(txn, bytes_view(key.data(), key.size()), {});
  }
  void erase(const std::string& key) {
    commit(keeper(), [&](Transaction& txn) {
      return table().tree().erase(txn, bytes_view(key.data(), key.size()));
    });
  }
  Status get(Transaction& txn, const std::string& key) const {
    uint32_t bytes = 0;
    return table().tree().get(txn, bytes_view(key.data(), key.size()), nullptr, 0, bytes);
  }

 private:
  const std::string keys_[4] = {"a", "prefix01-one", "prefix01-two", "z"};
};

/// R45: a layer that still has keys is not removed together with the erased slots beside it.
inline std::string a_compaction_keeps_layers_with_keys() {
  Layered stage;
  Problem problem;
  stage.erase(stage.key(0));
  stage.erase(stage.key(3));
  stage.let_grace_pass();
  stage.work_off_hints();
  problem.expect(stage.compactions() == 1, "the page was not compacted");
  Transaction& reader = stage.reader();
  problem.expect(reader.begin(), Status::ok, "begin");
  problem.expect(stage.get(reader, stage.key(1)), Status::ok, "look-up in the layer");
  problem.expect(reader.commit(), Status::ok, "commit");
  return problem.text();
}

/// R45: an empty layer is removed, even though all records beside its slot are living.
inline std::string an_empty_layer_is_dropped_from_a_living_page() {
  Layered stage;
  Problem problem;
  for (int i = 10; i < 30; ++i) stage.put(stage.keeper(), "live" + std::to_string(i));
  stage.erase(stage.key(1));
  stage.erase(stage.key(2));
  // The first pass empties the layer, the second one checks the page above it.
  for (int i = 0; i < 2; ++i) {
    stage.let_grace_pass();
    stage.work_off_hints();
  }
  TreeStatistics statistics;
  problem.expect(check_tree(stage.cluster().view(), stage.storage(), statistics).empty(),
                 "the tree is unsound");
  problem.expect(statistics.layers == 1, "an empty layer stays");  // the first layer counts
  problem.expect(statistics.records == 22, "a record is missing");
  return problem.text();
}

/// R45: a look-up answers "not found" from a layer's empty root. After the layer is removed, an
/// insert puts the key into the layer above. Only the old root can show that the answer is out of
/// date.
inline std::string a_dropped_layer_is_marked() {
  Layered stage;
  Problem problem;
  for (size_t i = 0; i < 4; ++i) stage.erase(stage.key(i));
  stage.let_grace_pass();
  // Empties the layer, and leaves a hint for the page above it.
  stage.work_off_hints();
  Transaction& reader = stage.reader();
  problem.expect(reader.begin(), Status::ok, "begin");
  problem.expect(stage.get(reader, stage.key(1)), Status::not_found, "look-up in the layer");
  problem.expect(reader.page_version_set_size() == 1, "the layer's page is not registered");
  for (int i = 0; i < 6; ++i) stage.cluster().tick();
  stage.work_off_hints();
  stage.writer().worker().enter();
  problem.expect(stage.page_with(0)->header.version().count() == 0, "the layer has not gone");
  stage.commit(stage.writer(), [&](Transaction& txn) {
    const Status status = stage.insert(txn, stage.key(1));
    return status == Status::ok ? stage.marks().put(txn, 1, 1) : status;
  });
  uint64_t mark = 0;
  problem.expect(stage.marks().get(reader, 1, mark), Status::ok, "read of the mark");
  problem.expect(mark == 1, "the mark is missing");
  problem.expect(reader.commit(), Status::phantom, "commit of who missed the insert");
  return problem.text();
}

/// R46: a merge finds a run of empty pages. Before the merge locks them, one of them gets keys: a
/// few, or so many that the page is split.
inline std::string a_merge_checks_again_under_its_locks(uint64_t keys) {
  Reclaim stage;
  Problem problem;
  stage.make_empty_run();
  const AtFirst at_point(SyncPoint::found_run,
                         [&] { stage.insert(stage.writer(), 200, 200 + keys); });
  stage.work_off_hints();
  problem.expect(at_point.was_reached(), "no run of empty pages was found");
  for (uint64_t key = 200; key < 200 + keys; ++key) {
    problem.expect(stage.has(key), "a key is gone with the page that was merged");
  }
  return problem.text();
}

/// R46: merged pages are marked as moved before their successor can be found. Otherwise a reader
/// that scanned the old, empty page misses an insert into the successor.
inline std::string a_merge_moves_its_pages_first() {
  Reclaim stage;
  Problem problem;
  stage.make_empty_run();
  Transaction& reader = stage.reader();
  std::unique_ptr<Other> writer;
  Status read = Status::ok;
  uint64_t mark = 0;
  const auto finish_reader = [&] {
    problem.expect(stage.marks().get(reader, 1, mark), Status::ok, "read of the mark");
    read = reader.commit();
  };
  {
    uint64_t value = 0;
    const BorderPage* page = nullptr;
    std::atomic<bool> started{false};
    const AtSyncPoints at_points([&](SyncPoint reached) {
      if (started.load(std::memory_order_acquire)) return;
      if (reached == SyncPoint::found_run && !reader.is_active()) {
        problem.expect(reader.begin(), Status::ok, "begin");
        problem.expect(stage.table().get(reader, 300, value), Status::not_found, "look-up");
        const auto key = ordered_key(300);
        page =
            find_border(reader.worker(), stage.storage(), root_link(stage.storage()), slice_of(key))
                .page;
      }
      if (reached != SyncPoint::publishing_merge) return;
      started.store(true, std::memory_order_release);
      writer = std::make_unique<Other>([&] {
        stage.commit(stage.writer(), [&](Transaction& txn) {
          const Status status = stage.table().insert(txn, 300, 300);
          return status == Status::ok ? stage.marks().put(txn, 1, 1) : status;
        });
      });
      writer->wait_until([&] { return is_last_waiter(page->lock, stage.writer().worker()); });
      if (writer->is_done()) finish_reader();
    });
    stage.work_off_hints();
    problem.expect(writer != nullptr, "nothing was merged");
    if (writer != nullptr) writer->join();
  }
  if (reader.is_active()) finish_reader();
  problem.expect(mark == 1, "the mark is missing");
  problem.expect(read, Status::phantom, "commit of who missed the insert");
  problem.expect(stage.has(300), "the insert is lost");
  return problem.text();
}

/// R46: a merged page may begin before the low bound of a scan. The scan must skip the keys before
/// that bound.
inline std::string a_scan_starts_within_a_merged_page() {
  Reclaim stage;
  Problem problem;
  stage.make_empty_run();
  stage.work_off_hints();
  problem.expect(stage.merges() != 0, "nothing was merged");
  stage.insert(stage.writer(), 100, 700, 200);
  uint64_t count = 0;
  stage.commit(stage.reader(),
               [&](Transaction& txn) { return stage.table().scan(txn, 200, 600, true, count); });
  problem.expect(count == 2, "a scan of two keys found " + std::to_string(count));
  return problem.text();
}

}  // namespace atolldb::test
