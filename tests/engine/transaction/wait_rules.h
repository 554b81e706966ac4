// Rules of waiting: operations only try a lock where a wait could close a cycle (R22), and no wait
// outlives the cluster (R24). A body returns an error text, or an empty text if all is right. Needs
// the engine with sync points (`ATOLL_MUTANTS`).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "engine/transaction/storage_ops.h"
#include "tests/engine/mastertree/move_rules.h"
#include "tests/engine/mastertree/reclaim_rules.h"
#include "tests/engine/sequential/append_rules.h"

namespace atolldb::test {

/// `operation`, run by the worker `waits`, must end although another worker holds the lock.
template <typename Operation>
std::string ends_under_a_foreign_lock(McsWord& lock, WorkerContext& holder, WorkerContext& waits,
                                      Operation&& operation) {
  Problem problem;
  CHECK(holder.locker().lock(lock, UniversalName()) == Status::ok);
  Other other([&] { operation(); });
  other.wait_until([&] { return is_last_waiter(lock, waits); });
  problem.expect(other.is_done(), "waits for a lock out of universal order");
  holder.locker().unlock(lock);
  other.join();
  return problem.text();
}

enum class Held { page, layer_root, merged_page, parent, root };

/// Reclaiming meets a lock that another worker holds. It may be the lock of the page to compact, or
/// of a layer's root while records are locked. In a merge, it is that of a page, its parent or the
/// root word.
inline std::string reclaiming_waits_for_no_lock(Held held) {
  if (held == Held::page || held == Held::layer_root) {
    Layered stage;
    for (size_t i = 0; i < 4; ++i) stage.erase(stage.key(i));
    BorderPage* page = stage.page_with(0);
    McsWord* lock = &page->lock;
    stage.let_grace_pass();
    if (held == Held::layer_root) {
      stage.work_off_hints();
      stage.let_grace_pass();
      page = stage.page_with(0);
      CHECK(page->header.version().count() == 1);
      const VolatilePointer below = page->record(0)->next_layer()->load_acquire();
      lock = &tree_page(stage.cluster().view().resolve(below))->lock;
    }
    return ends_under_a_foreign_lock(*lock, stage.writer().worker(), stage.keeper().worker(),
                                     [&] { stage.work_off_hints(); });
  }
  Reclaim stage;
  stage.make_empty_run();
  stage.writer().worker().enter();
  if (held != Held::merged_page) {
    PageHeader* root = stage.cluster().view().resolve(stage.storage().root.load_acquire());
    McsWord& lock = held == Held::parent ? tree_page(root)->lock : stage.storage().root_lock;
    return ends_under_a_foreign_lock(lock, stage.writer().worker(), stage.keeper().worker(),
                                     [&] { stage.work_off_hints(); });
  }
  // Pages are compacted first, so the pages to merge are known only when the run has been found.
  McsLocker& locker = stage.writer().worker().locker();
  std::atomic<McsWord*> locked{nullptr};
  const AtFirst at_point(SyncPoint::found_run, [&] {
    McsWord& lock = stage.page_with(slice_of(ordered_key(300)))->lock;
    CHECK(locker.lock(lock, UniversalName()) == Status::ok);
    locked.store(&lock, std::memory_order_release);
  });
  Other other([&] { stage.work_off_hints(); });
  other.wait_until([&] {
    const McsWord* lock = locked.load(std::memory_order_acquire);
    return lock != nullptr && is_last_waiter(*lock, stage.keeper().worker());
  });
  Problem problem;
  problem.expect(other.is_done(), "waits for a lock out of universal order");
  problem.expect(at_point.was_reached(), "no run of empty pages was found");
  if (at_point.was_reached()) locker.unlock(*locked.load(std::memory_order_acquire));
  other.join();
  return problem.text();
}

/// An insert splits the root page, and its next descent would adopt the twins.
inline std::string an_adoption_waits_for_no_lock() {
  Stage stage;
  StorageControl& storage = stage.empty_tree("splitting");
  const Table table(Kind::tree, storage);
  Transaction& b = stage.b();
  return ends_under_a_foreign_lock(storage.root_lock, stage.a().worker(), b.worker(), [&] {
    stage.commit_alone([&](Transaction& txn) { return insert_keys(txn, table, 0, 200); });
  });
}

/// R23: compactions, adoptions and merges take their new pages from the pool before they lock
/// anything.
inline std::string reclaiming_takes_its_pages_first() {
  Reclaim stage;
  stage.make_empty_run();
  std::string problem =
      pages_come_before_locks(stage.cluster(), stage.keeper(), [&] { stage.work_off_hints(); });
  return stage.merges() != 0 ? problem : "nothing was merged";
}

/// Events that a worker waits for and that never happen.
enum class Stuck {
  record_lock,    // the lock of a record that a commit writes
  half_written,   // a record whose writer died in the middle
  moving_get,     // a record whose mover died before it marked the page; met by a look-up
  moving_insert,  // as moving_get, but met by an insert
  moving_increment,
  moving_scan,
  moving_cursor,    // as moving_get, but met by a cursor on the record
  missing_twins,    // a page whose mover died before it stored the twins
  open_append,      // a list whose writer died during an append
  used_up_ordinals  // no ordinals are left, and the clock stands still
};

/// R24: once the cluster has failed, the wait ends with cluster_failed.
inline std::string a_wait_ends_with_the_cluster(Stuck stuck) {
  Stage stage;
  Problem problem;
  const Heap heap(stage);
  const Table& tree = stage.tree();
  Transaction& a = stage.a();
  WorkerContext& b = stage.b().worker();
  std::atomic<uint32_t>& state = stage.cluster().view().control->state;
  RecordRef in_array;
  RecordRef in_tree;
  stage.commit_alone([&](Transaction& txn) {
    const Status status = stage.array().find(txn, 10, in_array);
    return status == Status::ok ? tree.find(txn, 0, in_tree) : status;
  });
  stage.commit_alone([&](Transaction& txn) { return heap.append(txn); });
  PageHeader* page = page_of(in_tree.record);
  std::atomic<uint64_t>& array_vid = in_array.record->vid;
  std::atomic<uint64_t>& tree_vid = in_tree.record->vid;
  const uint64_t array_was = array_vid.load(std::memory_order_acquire);
  const uint64_t tree_was = tree_vid.load(std::memory_order_acquire);
  const PageVersion page_was = page->version();
  uint64_t value = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  MasterTreeCursor cursor(tree.tree(), a, {}, true);
  std::function<Status()> operation;
  const auto move_record = [&](std::function<Status()> meets_it) {
    tree_vid.store(tree_was | Vid::kMoved, std::memory_order_release);
    operation = std::move(meets_it);
  };
  switch (stuck) {
    case Stuck::record_lock:
      problem.expect(stage.array().put(a, 10, 1), Status::ok, "write");
      CHECK(b.locker().lock(in_array.record->lock, in_array.name()) == Status::ok);
      operation = [&] { return a.commit(); };
      break;
    case Stuck::half_written:
      array_vid.store(array_was | Vid::kBeingWritten, std::memory_order_release);
      operation = [&] { return stage.array().get(a, 10, value); };
      break;
    case Stuck::moving_get:
      move_record([&] { return tree.get(a, 0, value); });
      break;
    case Stuck::moving_insert:
      move_record([&] { return tree.insert(a, 0, value); });
      break;
    case Stuck::moving_increment:
      move_record([&] { return tree.add(a, 0, 1); });
      break;
    case Stuck::moving_scan:
      move_record([&] { return tree.scan(a, 0, 100, true, value); });
      break;
    case Stuck::moving_cursor:
      problem.expect(cursor.next(), Status::ok, "first record");
      move_record([&] { return cursor.get(&value, 8); });
      break;
    case Stuck::missing_twins:
      page->set_version(page_was.with_status(PageVersion::kMoved));
      operation = [&] { return tree.get(a, 0, value); };
      break;
    case Stuck::open_append:
      begin_append(b, heap.storage());
      operation = [&] { return heap.count(a, value); };
      break;
    case Stuck::used_up_ordinals:
      array_vid.store(Vid::make(b.current_epoch(), Vid::kMaxOrdinal).word(),
                      std::memory_order_release);
      problem.expect(stage.array().put(a, 10, 1), Status::ok, "write");
      operation = [&] { return a.commit(); };
      break;
  }
  Status status = Status::ok;
  // The timeout only finds a fault: with the rule in force the wait ends within milliseconds.
  const Mutant mutant_was = active_mutant.load(std::memory_order_relaxed);
  const std::chrono::seconds patience(mutant_was == Mutant::none ? 60 : 1);
  const auto give_up = std::chrono::steady_clock::now() + patience;
  const uint32_t alive = state.exchange(kClusterFailedFrom, std::memory_order_seq_cst);
  Other waiter([&] { status = operation(); });
  waiter.wait_until([&] { return std::chrono::steady_clock::now() > give_up; });
  problem.expect(waiter.is_done(), "a wait goes on though the cluster has failed");
  // Switches the rule on again, so that the thread ends.
  active_mutant.store(Mutant::none, std::memory_order_relaxed);
  if (stuck == Stuck::record_lock) b.locker().unlock(in_array.record->lock);
  waiter.join();
  active_mutant.store(mutant_was, std::memory_order_relaxed);
  state.store(alive, std::memory_order_seq_cst);
  problem.expect(status, Status::cluster_failed, "the end of the wait");
  return problem.text();
}

/// A record has moved, and its page is not yet marked. A worker that meets it waits for the page
/// word, and does not check the same page again and again.
inline std::string a_moving_page_is_waited_for() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  RecordRef ref;
  uint64_t value = 0;
  stage.commit_alone([&](Transaction& b) { return stage.tree().find(b, 10, ref); });
  const uint64_t vid = ref.record->vid.load(std::memory_order_acquire);
  std::atomic<uint32_t>& state = stage.cluster().view().control->state;
  int descents = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  ref.record->vid.store(vid | Vid::kMoved, std::memory_order_release);
  {
    const AtSyncPoints at_points([&](SyncPoint reached) {
      if (reached == SyncPoint::descending && ++descents == 1000) {
        ref.record->vid.store(vid, std::memory_order_release);
      }
      if (reached == SyncPoint::awaiting_move) {
        state.store(kClusterFailedFrom, std::memory_order_seq_cst);
      }
    });
    problem.expect(stage.tree().get(a, 10, value), Status::cluster_failed, "look-up");
  }
  problem.expect(descents < 1000, "looked again a thousand times at the same page");
  ref.record->vid.store(vid, std::memory_order_release);
  return problem.text();
}

}  // namespace atolldb::test
