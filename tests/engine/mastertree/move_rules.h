// Rules of installing, splitting and replacing pages (R1, R3, R5, R7, R10, R13, R23). A body
// returns an error text, or an empty text if all is right. Needs the engine with sync points
// (`ATOLL_MUTANTS`).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/mastertree/descent.h"
#include "engine/mastertree/inspect.h"
#include "engine/sequential/sequential.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

inline Bytes bytes_of_text(const std::string& text) { return bytes_view(text.data(), text.size()); }

inline StorageControl& unwritten(Stage& stage, Kind kind) {
  return kind == Kind::tree
             ? stage.empty_tree("unwritten")
             : stage.cluster().create("unwritten", StorageType::array, 8, Stage::kKeys);
}

inline BorderPage* page_with(Stage& stage, StorageControl& storage, uint64_t slice) {
  WorkerContext& worker = stage.b().worker();
  worker.enter();
  return find_border(worker, storage, root_link(storage), slice).page;
}

/// Inserts `count` keys, starting with `first`, in one transaction.
inline Status insert_keys(Transaction& txn, const Table& table, uint64_t first, uint64_t count) {
  Status status = Status::ok;
  for (uint64_t key = first; key < first + count && status == Status::ok; ++key) {
    status = table.insert(txn, key, key);
  }
  return status;
}

/// R1: two workers install a page over the same null word. The second must not replace the first
/// page.
inline std::string two_installations_leave_one_page(Kind kind) {
  Stage stage;
  Problem problem;
  const Table table(kind, unwritten(stage, kind));
  Transaction& a = stage.a();
  uint64_t value = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  const AtFirst at_point(SyncPoint::installing, [&] {
    stage.commit_alone([&](Transaction& b) { return table.put(b, 5, 7); });
  });
  problem.expect(finish(a, table.put(a, 6, 8)), Status::ok, "the second installation");
  problem.expect(at_point.was_reached(), "nothing was installed");
  // Worker a does this look-up, because worker b would remember the page that it installed.
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(table.get(a, 5, value), Status::ok, "look-up");
  problem.expect(value == 7, "the first page was replaced");
  a.rollback(Status::user_abort);
  return problem.text();
}

/// R1: two workers install a directory of a sequential storage over the same null word. The second
/// one must not replace the first directory.
inline std::string two_first_appends_leave_one_directory() {
  Stage stage;
  Problem problem;
  const Sequential heap(stage.cluster().create("heap", StorageType::sequential));
  Transaction& a = stage.a();
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(heap.append(a, {}), Status::ok, "append");
  const AtFirst at_point(SyncPoint::installing, [&] {
    stage.commit_alone([&](Transaction& b) { return heap.append(b, {}); });
  });
  problem.expect(a.commit(), Status::ok, "commit");
  problem.expect(at_point.was_reached(), "nothing was installed");
  problem.expect(a.begin(), Status::ok, "begin");
  SequentialCursor cursor(heap, a);
  problem.expect(cursor.next(), Status::ok, "first record");
  problem.expect(cursor.next(), Status::ok, "second record");
  a.rollback(Status::user_abort);
  return problem.text();
}

/// R5: a look-up answered "not found" through the same word that the transaction installs a page
/// over. Nothing below that word was registered, so a foreign write there would go undetected.
inline std::string own_installation_over_an_absence(Kind kind) {
  Stage stage;
  Problem problem;
  const Table table(kind, unwritten(stage, kind));
  Transaction& a = stage.a();
  uint64_t value = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect_either(table.get(a, 5, value), Status::ok, Status::not_found, "read of nothing");
  Status status = table.put(a, 6, 1);
  if (status == Status::ok) {
    stage.commit_alone([&](Transaction& b) { return table.put(b, 5, 7); });
    status = a.commit();
    problem.expect(status != Status::ok, "missed a write below the page that it installed");
  }
  problem.expect(status, Status::pointer_installed, "own installation");
  a.rollback(status);
  return problem.text();
}

/// R7: a moved record is marked as moved, because only its copy changes from then on.
inline std::string a_write_to_the_moved_copy_is_seen() {
  Stage stage;
  Problem problem;
  const Table table(Kind::tree, stage.empty_tree("moving"));
  Transaction& a = stage.a();
  uint64_t value = 0;
  stage.commit_alone([&](Transaction& b) { return table.insert(b, 500, 1); });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(table.get(a, 500, value), Status::ok, "read");
  stage.commit_alone([&](Transaction& b) { return insert_keys(b, table, 1000, 200); });
  problem.expect(stage.cluster().metrics(1, 0).splits.get() != 0, "the page was not split");
  stage.commit_alone([&](Transaction& b) { return table.put(b, 500, 9); });
  problem.expect(stage.array().put(a, 1, value), Status::ok, "write");
  problem.expect(a.commit(), Status::read_conflict,
                 "commit of a read whose record moved and changed");
  return problem.text();
}

/// R7: worker b moves the record after worker a has passed its verification, and before a writes
/// it. Worker b must wait for the record's lock; otherwise the write changes the old copy.
inline std::string a_record_is_moved_amid_a_commit(bool to_a_layer) {
  Stage stage;
  Problem problem;
  const MasterTree tree(stage.empty_tree("moving"));
  const Table table(Kind::tree, tree.storage());
  const std::string key = "prefix01-one";
  const std::string other_key = "prefix01-two";
  Transaction& a = stage.a();
  Transaction& b = stage.b();
  RecordRef ref;
  std::string text(8, '?');
  uint32_t bytes = 0;
  const auto get = [&](Transaction& txn) {
    return tree.get_for_update(txn, bytes_of_text(key), text.data(), 8, bytes, ref);
  };
  stage.commit_alone([&](Transaction& txn) {
    return tree.insert(txn, bytes_of_text(key), bytes_of_text("oldvalue"));
  });
  stage.commit_alone(get);
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(tree.update_range(a, bytes_of_text(key), 0, bytes_of_text("newvalue")), Status::ok,
                 "write");
  Status moved = Status::ok;
  std::unique_ptr<Other> mover;
  {
    const AtFirst at_point(SyncPoint::verified, [&] {
      mover = std::make_unique<Other>([&] {
        CHECK(b.begin() == Status::ok);
        moved = to_a_layer ? tree.insert(b, bytes_of_text(other_key), {})
                           : insert_keys(b, table, 1000, 200);
        moved = finish(b, moved);
      });
      mover->wait_until([&] { return is_last_waiter(ref.record->lock, b.worker()); });
    });
    problem.expect(a.commit(), Status::ok, "commit of the write");
    problem.expect(at_point.was_reached(), "the sync point was not reached");
    mover->join();
  }
  problem.expect(moved, Status::ok, "commit of what moves the record");
  stage.commit_alone(get);
  problem.expect(text == "newvalue", "the write is lost: " + text);
  if (to_a_layer) {
    problem.expect(b.begin(), Status::ok, "begin");
    problem.expect(tree.get(b, bytes_of_text(other_key), text.data(), 8, bytes), Status::ok,
                   "the key that made the layer");
    b.rollback(Status::user_abort);
  }
  return problem.text();
}

/// A page is replaced after an insert has checked it, and before the insert locks it. The insert
/// must change the successor page.
inline std::string a_page_is_replaced_before_it_is_locked(bool many) {
  Stage stage;
  Problem problem;
  StorageControl& storage = stage.empty_tree("moving");
  const Table table(Kind::tree, storage);
  const MasterTree tree(storage);
  Transaction& a = stage.a();
  uint64_t value = 0;
  stage.commit_alone([&](Transaction& b) { return table.insert(b, 10, 10); });
  problem.expect(a.begin(), Status::ok, "begin");
  const AtFirst at_point(SyncPoint::locking_page, [&] {
    // Writes a larger payload for the same key. The engine rebuilds the record, and replaces the
    // page.
    stage.commit_alone([&](Transaction& b) {
      return tree.upsert(b, ordered_key(10), bytes_of_text(std::string(500, 'x')));
    });
  });
  const auto key = ordered_key(20);
  const Bytes keys[] = {key};
  const Bytes payloads[] = {bytes_view(&value, sizeof(value))};
  const Status status =
      many ? tree.insert_many(a, keys, payloads) : tree.insert(a, keys[0], payloads[0]);
  problem.expect(finish(a, status), Status::ok, "insert");
  problem.expect(at_point.was_reached(), "no page was locked");
  stage.commit_alone([&](Transaction& b) {
    const Status found = table.get(b, 20, value);
    problem.expect(found, Status::ok, "look-up of the key that was inserted");
    return found == Status::not_found ? Status::ok : found;
  });
  return problem.text();
}

/// R13: a transaction scans, and then another one revives a key that the scan found erased. The
/// insert of the first transaction splits the page. The page words of the two new pages must not
/// replace the page word of the scan.
inline std::string scan_foreign_revival_own_split() {
  Stage stage;
  Problem problem;
  const MasterTree tree(stage.empty_tree("full"));
  const Table table(Kind::tree, tree.storage());
  const std::string large(1896, 'x');
  const auto insert = [&](Transaction& txn, uint64_t key) {
    return tree.insert(txn, ordered_key(key), bytes_of_text(large));
  };
  stage.commit_alone([&](Transaction& b) {
    const Status status = insert(b, 1);
    return status == Status::ok ? insert(b, 3) : status;
  });
  stage.commit_alone([&](Transaction& b) { return table.erase(b, 3); });
  Transaction& a = stage.a();
  uint64_t count = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(table.scan(a, 0, 100, true, count), Status::ok, "scan");
  problem.expect(count == 1, "the scan returned a tombstone");
  stage.commit_alone([&](Transaction& b) { return insert(b, 3); });
  problem.expect(finish(a, insert(a, 2)), Status::phantom, "own split after a foreign insert");
  return problem.text();
}

/// R13: a look-up met a tombstone and answered "not found". Own inserts then split the page, and
/// the split elides the tombstone. From then on, the page words of the new pages cover the absence.
inline std::string own_split_elides_what_was_read() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t value = 0;
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 30); });
  stage.b().worker().leave();
  stage.ticks(6);
  problem.expect(a.begin(), Status::ok, "begin");
  stage.ticks(2);
  problem.expect(stage.tree().get(a, 30, value), Status::not_found, "look-up of an erased key");
  problem.expect(a.read_set_size() == 1, "the tombstone is not in the read set");
  problem.expect(finish(a, insert_keys(a, stage.tree(), 1000, 200)), Status::ok, "own splits");
  problem.expect(stage.cluster().metrics(0, 0).splits.get() != 0, "the page was not split");
  return problem.text();
}

/// R44: when the page of a slot is split, the snapshot page of the slot covers more than the slot.
/// The adoption must remove the snapshot page from the slot.
inline std::string adoption_forgets_the_snapshot_page() {
  Stage stage;
  Problem problem;
  StorageControl& storage = stage.empty_tree("splitting");
  const Table table(Kind::tree, storage);
  stage.commit_alone([&](Transaction& b) { return insert_keys(b, table, 0, 200); });
  auto* root =
      interior_page(tree_page(stage.cluster().view().resolve(storage.root.load_acquire())));
  problem.expect(!root->is_border(), "the tree has one page only");
  const uint32_t count = root->header.version().count();
  for (uint32_t i = 0; i < count; ++i) {
    root->children[i].snapshot_word.store(77, std::memory_order_relaxed);
  }
  stage.commit_alone([&](Transaction& b) { return insert_keys(b, table, 200, 100); });
  problem.expect(root->header.version().count() > count, "nothing was adopted");
  uint32_t forgotten = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (root->children[i].snapshot_word.load(std::memory_order_relaxed) == 0) ++forgotten;
  }
  problem.expect(forgotten != 0, "a slot whose range has shrunk keeps its snapshot page");
  return problem.text();
}

/// R3: the content of a slot of an interior page stays in that slot as long as the page lives. When
/// the page has been replaced, every word of it is frozen.
inline std::string interior_slots_do_not_move_and_freeze() {
  Stage stage;
  Problem problem;
  StorageControl& storage = stage.empty_tree("growing");
  const Table table(Kind::tree, storage);
  Transaction& a = stage.a();
  WorkerContext& reader = stage.a().worker();
  uint64_t next = 0;
  // Inserts blocks of ascending keys, the blocks in descending order. New separators then precede
  // others of the unsorted tail.
  const auto grow = [&] {
    stage.commit_alone(
        [&](Transaction& b) { return insert_keys(b, table, 1'000'000 - 1000 * ++next, 100); });
  };
  problem.expect(a.begin(), Status::ok, "begin");  // keeps every replaced page from being reused
  reader.enter();
  TreePage* root = nullptr;
  do {
    grow();
    root = tree_page(stage.cluster().view().resolve(storage.root.load_acquire()));
  } while (root->is_border());
  InteriorPage* page = interior_page(root);
  std::vector<uint64_t> separators;
  for (int i = 0; i < 200 && !page->header.version().is_moved(); ++i) {
    const uint32_t count = page->header.version().count();
    for (uint32_t slot = 0; slot < separators.size(); ++slot) {
      problem.expect(page->separators[slot] == separators[slot], "a separator has moved");
    }
    separators.assign(page->separators, page->separators + count);
    grow();
  }
  problem.expect(page->header.version().is_moved(), "the page was not replaced");
  for (uint32_t slot = 0; slot < page->header.version().count(); ++slot) {
    problem.expect(page->children[slot].load_acquire().is_frozen(),
                   "a word of a replaced page is not frozen");
  }
  a.rollback(Status::user_abort);
  return problem.text();
}

/// R23: no operation takes pages from the pool while it holds a lock. REQUIRES: `work` needs a
/// page. The worker's own supply is emptied again and again.
template <typename Work>
std::string pages_come_before_locks(TestCluster& cluster, Transaction& txn, Work&& work) {
  Problem problem;
  int held = 0;
  uint64_t free_pages = 0;
  const PagePool& pool = cluster.pool(txn.worker().node());
  const auto lock = [&] {
    if (held++ == 0) free_pages = pool.free_count();
  };
  const auto unlock = [&] {
    problem.expect(pool.free_count() == free_pages, "pages were taken under a lock");
    --held;
  };
  const uint64_t before = txn.worker().metrics().pages_allocated.get();
  txn.worker().pages().flush();
  {
    const AtSyncPoints at_points([&](SyncPoint reached) {
      if (reached == SyncPoint::locked_page || reached == SyncPoint::locked_writes) lock();
      if (reached == SyncPoint::unlocking_page || reached == SyncPoint::applied) unlock();
      if (reached == SyncPoint::descending && held == 0) txn.worker().pages().flush();
    });
    work();
  }
  problem.expect(held == 0, "the sync points of locking and unlocking do not match");
  problem.expect(txn.worker().metrics().pages_allocated.get() != before, "no page was needed");
  return problem.text();
}

inline std::string a_split_takes_its_pages_first() {
  Stage stage;
  const Table table(Kind::tree, stage.empty_tree("splitting"));
  Transaction& b = stage.b();
  stage.commit_alone([&](Transaction& txn) { return insert_keys(txn, table, 0, 1); });
  const BorderPage* page = page_with(stage, table.tree().storage(), 0);
  uint64_t next = 1;
  const auto is_full = [&] {
    return !page->has_room(page->header.version().count(), TreeRecord::bytes_with(8, 8));
  };
  for (; !is_full(); ++next) {
    stage.commit_alone([&](Transaction& txn) { return insert_keys(txn, table, next, 1); });
  }
  return pages_come_before_locks(stage.cluster(), b, [&] {
    stage.commit_alone([&](Transaction& txn) { return insert_keys(txn, table, next, 1); });
  });
}

inline std::string an_append_takes_its_page_first() {
  Stage stage;
  const Sequential heap(stage.cluster().create("heap", StorageType::sequential));
  stage.commit_alone([&](Transaction& txn) { return heap.append(txn, {}); });
  Transaction& b = stage.b();
  CHECK(b.begin() == Status::ok);
  const std::vector<std::byte> large(2000);
  for (int i = 0; i < 3; ++i) CHECK(heap.append(b, large) == Status::ok);
  return pages_come_before_locks(stage.cluster(), b, [&] { CHECK(b.commit() == Status::ok); });
}

}  // namespace atolldb::test
