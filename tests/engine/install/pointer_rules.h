// Reads of pointers to pages that are dropped, copied up or split meanwhile (R2, R3). A body
// returns an error text, or an empty text if all is right. Every run takes the same steps.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/mastertree/tree_path.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/install/drop_rules.h"
#include "tests/engine/install/droppable_tree.h"

namespace atolldb::test {

/// R2: a reader loads a null word, then the snapshot word beside it. In between, the page is copied
/// up, changed, and dropped onto a later snapshot. The reader must use two words that were valid at
/// the same time.
inline std::string null_words_are_read_twice() {
  DropStage stage;
  stage.fill(0, 1);
  InstallReport report;
  Problem problem;
  std::string installed = stage.snapshot_and_install(report);
  problem.expect(installed.empty(), installed);
  Transaction& reader = *stage.cluster.worker(0).transaction;
  int64_t value = 0;
  problem.expect(reader.begin(), Status::ok, "begin");
  {
    const AtFirst at_point(SyncPoint::loaded_null, [&] {
      stage.fill(1, 2);
      installed = stage.snapshot_and_install(report);
    });
    problem.expect(stage.get(reader, stage.index(0, 0, 0), value), Status::ok, "read");
    problem.expect(at_point.was_reached(), "no null word was read");
  }
  problem.expect(installed.empty(), installed);
  problem.expect(value == 2, "reads what was before");
  problem.expect(reader.commit(), Status::ok, "commit of who read the later snapshot");
  return problem.text();
}

/// Runs `install` to its end. When the words of a page that is being dropped are frozen, runs
/// `read` in its own thread until that thread waits or is done.
template <typename Read, typename Install>
void read_at_frozen_words(Problem& problem, Read&& read, Install&& install) {
  std::unique_ptr<Other> reader;
  std::atomic<bool> waits{false};
  std::atomic<bool> has_started{false};
  {
    const AtSyncPoints at_points([&](SyncPoint reached) {
      if (reached == SyncPoint::awaiting_move) waits.store(true, std::memory_order_release);
      if (reached != SyncPoint::frozen_words ||
          has_started.exchange(true, std::memory_order_acq_rel)) {
        return;
      }
      reader = std::make_unique<Other>(read);
      reader->wait_until([&] { return waits.load(std::memory_order_acquire); });
    });
    const std::string installed = install();
    problem.expect(installed.empty(), installed);
    problem.expect(reader != nullptr, "no page with frozen words was dropped");
    if (reader != nullptr) reader->join();
  }
}

/// R3: a read in an array that met a frozen null word must register the word that replaced it.
/// Otherwise the commit would not detect a later write of the record.
inline std::string frozen_nulls_are_not_registered_in_arrays() {
  DropStage stage;
  stage.fill(0, 1);
  InstallReport report;
  Problem problem;
  int left = 2;  // drops the two leaves; the pages above them are kept for now
  stage.drop_policy = drop_some(left);
  const std::string installed = stage.snapshot_and_install(report);
  problem.expect(installed.empty(), installed);
  problem.expect(stage.pages().leaves == 0 && stage.pages().interiors == 1, "the stage is not set");
  stage.drop_policy = drop_all;
  Transaction& txn = *stage.cluster.worker(0).transaction;
  const uint64_t index = stage.index(0, 0, 0);
  const uint64_t mark = stage.index(1, 0, 0);
  int64_t value = 0;
  Status status = Status::ok;
  problem.expect(txn.begin(), Status::ok, "begin");
  read_at_frozen_words(
      problem, [&] { status = stage.get(txn, index, value); },
      [&] { return stage.install(report); });
  problem.expect(status, Status::ok, "read");
  problem.expect(value == 1, "reads another record");
  problem.expect(stage.write(1, {{index, false, 2}, {mark, false, 7}}), Status::ok, "writing");
  problem.expect(stage.get(txn, mark, value), Status::ok, "read of the mark");
  problem.expect(value == 7, "the mark is missing");
  problem.expect(is_abort(txn.commit()), "saw what was before the other, and what was after it");
  return problem.text();
}

/// A tree of several pages, some of which form a layer, and a snapshot of it.
class LayeredWarmTree {
 public:
  LayeredWarmTree()
      : warm(2),
        tree(warm.storage),
        marks(Kind::array, warm.cluster.create("marks", StorageType::array, 8, 10)) {}

  /// Inserts the keys 0 to 999, and `layer_keys` keys that share the slice of key 500.
  std::string fill(uint64_t layer_keys) {
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < 1000; ++i) keys.push_back(big_endian(i));
    for (uint64_t i = 0; i < layer_keys; ++i) keys.push_back(layer_key(i));
    std::vector<GleanedLog> logs;
    for (const std::string& key : keys) {
      const Status status = warm.cluster.worker(0).run(
          [&](Transaction& txn) { return tree.insert(txn, bytes_of(key), bytes_of("old")); });
      if (status != Status::ok) return "an insert ended with " + std::string(to_string(status));
    }
    warm.cluster.worker(0).context->leave();
    const uint64_t epoch = warm.settle();
    for (const std::string& key : keys) {
      logs.push_back({LogType::insert, key, 0, "old", Vid::make(epoch, 1)});
    }
    return warm.take(std::move(logs), epoch, 0);
  }
  static std::string layer_key(uint64_t number) { return big_endian(500) + big_endian(number); }

  WarmTree warm;
  MasterTree tree;
  Table marks;
};

/// R3 for trees. With `below_interior`, the frozen words belong to a page above border pages, which
/// are all dropped. Without it, the frozen word belongs to a record whose layer was dropped.
inline std::string frozen_nulls_are_not_registered_in_trees(bool below_interior) {
  LayeredWarmTree test;
  Problem problem;
  std::string installed = test.fill(below_interior ? 1000 : 2);
  problem.expect(installed.empty(), installed);
  // Drops all border pages of the layer. If the root of the layer is an interior page, it is kept.
  installed = test.warm.install([&](PageHeader& page) {
    return page.layer == 1 && page.level == 0 ? DropVerdict::drop : DropVerdict::keep;
  });
  problem.expect(installed.empty(), installed);
  problem.expect(test.warm.report.dropped != 0, "nothing was dropped");
  Transaction& txn = *test.warm.cluster.worker(0).transaction;
  const std::string key = LayeredWarmTree::layer_key(1);
  std::string value;
  uint64_t mark = 0;
  Status status = Status::ok;
  problem.expect(txn.begin(), Status::ok, "begin");
  read_at_frozen_words(
      problem, [&] { status = DroppableTree::read_key(txn, test.tree, key, value); },
      [&] {
        return test.warm.install([&](PageHeader& page) {
          const bool goes =
              below_interior ? page.layer == 1 : page.layer == 0 && tree_page(&page)->contains(500);
          return goes ? DropVerdict::drop : DropVerdict::keep;
        });
      });
  problem.expect(status, Status::ok, "read");
  problem.expect(value == "old", "reads another record");
  const Status written = test.warm.cluster.worker(1).run([&](Transaction& other) {
    const Status one = test.tree.update(other, bytes_of(key), bytes_of("new"));
    return one == Status::ok ? test.marks.put(other, 1, 7) : one;
  });
  problem.expect(written, Status::ok, "writing");
  problem.expect(test.marks.get(txn, 1, mark), Status::ok, "read of the mark");
  problem.expect(mark == 7, "the mark is missing");
  problem.expect(is_abort(txn.commit()), "saw what was before the other, and what was after it");
  return problem.text();
}

/// R3: a descent has determined the slot of a child. Then that child is copied up, split, and
/// dropped again. The page in the slot now covers only the left half of the range.
inline std::string a_null_word_counts_with_its_page_version() {
  DroppableTree test(2);
  Problem problem;
  std::string done = test.fill();
  problem.expect(done.empty(), done);
  done = test.warm.install(drop_all);
  problem.expect(done.empty(), done);
  TestCluster& cluster = test.warm.cluster;
  auto* root =
      interior_page(tree_page(cluster.view().resolve(test.warm.storage.root.load_acquire())));
  const ChildRanges children(*root, root->header.version().count());
  const SliceRange range = children.range(3);
  problem.expect(children.size() > 5, "the tree has too few pages");
  const std::string large(200, 'x');
  const auto change = [&] {
    // The page is full, so a larger record splits it.
    if (test.write(1, range.low, large) != Status::ok) done = "no update";
    cluster.worker(1).context->leave();
    const uint64_t epoch = test.warm.settle();
    const std::string key = big_endian(range.low);
    if (done.empty()) {
      done = test.warm.take({{LogType::insert, key, 0, large, Vid::make(epoch, 1)}}, epoch, 0);
    }
    if (done.empty()) done = test.warm.install(drop_all);
  };
  Transaction& reader = *cluster.worker(0).transaction;
  std::string value;
  problem.expect(reader.begin(), Status::ok, "begin");
  {
    const AtFirst at_point(SyncPoint::found_child, change);
    problem.expect(DroppableTree::read(reader, test.tree, range.high - 1, value), Status::ok,
                   "look-up of a key that was there all the time");
    problem.expect(at_point.was_reached(), "no child was found");
  }
  problem.expect(done.empty(), done);
  problem.expect(cluster.metrics(0, 1).splits.get() != 0, "the page was not split");
  problem.expect(test.warm.report.dropped > 1, "the halves were not dropped");
  problem.expect(!root->header.version().is_moved(), "the page with the pointers was replaced");
  problem.expect(value == "old", "reads another record");
  reader.rollback(Status::user_abort);
  return problem.text();
}

}  // namespace atolldb::test
