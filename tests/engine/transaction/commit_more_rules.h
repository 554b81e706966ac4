// Rules of commits: order of publication, deadlines, and waits that must end (R16, R17, R20, R23,
// R24, R27). A body returns an error text, or an empty text if all is right. Needs the engine with
// sync points (`ATOLL_MUTANTS`).
#pragma once

#include <sched.h>

#include <string>

#include "tests/engine/log/logger_rules.h"
#include "tests/engine/mastertree/move_rules.h"
#include "tests/engine/transaction/wait_rules.h"

namespace atolldb::test {

/// R16, R20: the ordinals of an epoch are used up, so a commit waits for the next epoch. That epoch
/// is also the commit's deadline.
inline std::string used_up_ordinals_end_at_the_deadline() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  RecordRef ref;
  stage.commit_alone([&](Transaction& b) { return stage.array().find(b, 20, ref); });
  ref.record->vid.store(Vid::make(a.worker().current_epoch(), Vid::kMaxOrdinal).word(),
                        std::memory_order_release);
  problem.expect(a.begin(a.worker().current_epoch() + 1), Status::ok, "begin");
  problem.expect(stage.array().put(a, 20, 4), Status::ok, "write");
  const AtFirst at_point(SyncPoint::awaiting_epoch, [&] { stage.ticks(1); });
  problem.expect(a.commit(), Status::deadline_exceeded, "commit past its deadline");
  problem.expect(at_point.was_reached(), "did not wait for the next epoch");
  problem.expect(ref.record->lock.is_unused(), "a lock is left");
  return problem.text();
}

/// R16: the ordinals of the last possible epoch are used up, and no later epoch follows.
inline std::string used_up_ordinals_of_the_last_epoch() {
  TestClusterOptions options{.clock = false};
  options.start_epoch = kMaxEpoch - 1;
  Stage stage(options);
  Problem problem;
  Transaction& a = stage.a();
  RecordRef ref;
  stage.commit_alone([&](Transaction& b) { return stage.array().find(b, 20, ref); });
  problem.expect(a.begin(kMaxEpoch + 1), Status::ok, "begin");
  problem.expect(stage.array().put(a, 20, 4), Status::ok, "write");
  stage.ticks(1);
  ref.record->vid.store(Vid::make(kMaxEpoch, Vid::kMaxOrdinal).word(), std::memory_order_release);
  std::atomic<uint32_t>& state = stage.cluster().view().control->state;
  const uint32_t alive = state.load(std::memory_order_relaxed);
  int turns = 0;
  {
    const AtSyncPoints at_points([&](SyncPoint reached) {
      if (reached == SyncPoint::awaiting_epoch && ++turns == 1000) {
        state.store(kClusterFailedFrom, std::memory_order_seq_cst);
      }
    });
    problem.expect(a.commit(), Status::deadline_exceeded, "commit in the last epoch");
  }
  state.store(alive, std::memory_order_seq_cst);
  return problem.text();
}

/// R17: a commit makes its list odd before its epoch is known. Therefore scans of later epochs see
/// the odd list.
inline std::string a_list_is_odd_before_the_commit_epoch() {
  Stage stage;
  Problem problem;
  const Heap heap(stage);
  Transaction& a = stage.a();
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(heap.append(a), Status::ok, "append");
  bool is_odd = false;
  const AtFirst at_point(SyncPoint::loaded_epoch, [&] {
    is_odd = own_list_version(a.worker(), heap.storage())->load(std::memory_order_acquire) % 2 == 1;
  });
  problem.expect(a.commit(), Status::ok, "commit");
  problem.expect(at_point.was_reached(), "no epoch was loaded");
  problem.expect(is_odd, "the list is even when the commit's epoch is chosen");
  return problem.text();
}

/// R27: a thread that sees no commit under way in an epoch sees that the epoch is dirty.
inline std::string an_epoch_is_dirty_before_its_commit_ends() {
  LogStage stage;
  Problem problem;
  const std::atomic<uint64_t>& dirty = stage.cluster().cluster().view().shared[0]->dirty_epoch;
  uint64_t seen = 0;
  const AtFirst at_point(SyncPoint::applied, [&] { seen = dirty.load(std::memory_order_seq_cst); });
  stage.put(1);
  problem.expect(at_point.was_reached(), "nothing was committed");
  problem.expect(seen == stage.cluster().epoch(), "a commit may end before its epoch is dirty");
  return problem.text();
}

/// R24: a worker queues for a lock after another waiter, and dies before it links itself to that
/// waiter. The waiter gets the lock, and does not wait for the dead worker once the cluster has
/// failed.
inline std::string a_hand_over_ends_with_the_cluster() {
  Stage stage;
  Problem problem;
  const ClusterView& view = stage.cluster().view();
  WorkerContext& holder = stage.a().worker();
  WorkerContext& waiter = stage.b().worker();
  McsWord lock{};
  CHECK(holder.locker().lock(lock, UniversalName()) == Status::ok);
  Other waits([&] { (void)waiter.locker().lock(lock, UniversalName()); });
  waits.wait_until([&] { return is_last_waiter(lock, waiter); });
  // The worker of the first auxiliary thread waits for no lock, so its block is free.
  const auto dead = static_cast<WorkerId>(waiter.id() + 1);
  const LockCode before = lock.waiters.exchange(lock_code(dead), std::memory_order_seq_cst);
  problem.expect(before == lock_code(waiter.id()), "nothing waits for the lock");
  holder.locker().unlock(lock);
  while (!waiter.holds(lock)) sched_yield();
  std::atomic<uint32_t>& state = view.control->state;
  const uint32_t alive = state.exchange(kClusterFailedFrom, std::memory_order_seq_cst);
  const bool has_rule = active_mutant.load(std::memory_order_relaxed) == Mutant::none;
  // The timeout only finds a fault: with the rule in force the wait ends within milliseconds.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(has_rule ? 60 : 1);
  waits.wait_until([&] { return std::chrono::steady_clock::now() > give_up; });
  problem.expect(waits.is_done(), "waits for a dead worker though the cluster has failed");
  // Lets the thread end: it makes a worker the head of the queue that does not wait.
  view.lock_space.block(waiter.id()).successor.store(lock_code(dead), std::memory_order_release);
  waits.join();
  state.store(alive, std::memory_order_seq_cst);
  return problem.text();
}

enum class InTheWay {
  writer,      // the record was moved, and its copy is being written
  layer_root,  // the record moved into a layer whose root is being replaced
};

/// R23: a commit verifies a record that has moved. While it holds locks, it does not wait for the
/// operation that is under way at the record's new place.
inline std::string verification_never_waits(InTheWay what) {
  Stage stage;
  Problem problem;
  const MasterTree tree(stage.empty_tree("moving"));
  const Table table(Kind::tree, tree.storage());
  const std::string key = "prefix01-one";
  const std::string other_key = "prefix01-two";
  const auto find = [&](Transaction& txn, RecordRef& ref) {
    uint32_t bytes = 0;
    return tree.get_for_update(txn, bytes_of_text(key), nullptr, 0, bytes, ref);
  };
  Transaction& a = stage.a();
  RecordRef ref;
  stage.commit_alone([&](Transaction& b) { return tree.insert(b, bytes_of_text(key), {}); });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(find(a, ref), Status::ok, "read");
  problem.expect(stage.array().put(a, 10, 1), Status::ok, "write");
  stage.commit_alone([&](Transaction& b) {
    return what == InTheWay::writer ? insert_keys(b, table, 1000, 200)
                                    : tree.insert(b, bytes_of_text(other_key), {});
  });
  stage.commit_alone([&](Transaction& b) { return find(b, ref); });
  PageHeader* page = page_of(ref.record);
  const Vid vid = ref.record->load_acquire();
  const PageVersion version = page->version();
  const auto put_back = [&] {
    ref.record->vid.store(vid.word(), std::memory_order_release);
    page->set_version(version);
  };
  if (what == InTheWay::writer) {
    ref.record->vid.store(vid.with(Vid::kBeingWritten).word(), std::memory_order_release);
  } else {
    page->set_version(version.with_status(PageVersion::kMoved));
  }
  int looks = 0;
  {
    const AtSyncPoints at_points([&](SyncPoint reached) {
      if (reached != SyncPoint::awaiting_writer && reached != SyncPoint::awaiting_move) return;
      if (++looks == 1000) put_back();
    });
    problem.expect(a.commit(), Status::read_conflict, "commit of a read that has moved");
  }
  problem.expect(looks == 0, "waited with locks held");
  put_back();
  return problem.text();
}

}  // namespace atolldb::test
