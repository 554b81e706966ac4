// Rules of locks, newest removed versions and hints in the code that replaces and reclaims pages
// (R10, R22, R34, R43, R44, R45). A body returns an error text, or an empty text if all is right.
// Needs the engine with sync points (`ATOLL_MUTANTS`).
#pragma once

#include <string>

#include "tests/engine/mastertree/move_rules.h"
#include "tests/engine/mastertree/reclaim_rules.h"
#include "tests/engine/transaction/wait_rules.h"

namespace atolldb::test {

/// R45: a compaction meets a record that another worker has locked. It gives up, and tries again a
/// little later.
inline std::string a_compaction_waits_for_no_record() {
  Reclaim stage;
  stage.insert(stage.keeper(), 0, 10);
  stage.erase(0, 8);
  stage.let_grace_pass();
  McsWord& lock = stage.page_with(0)->record(9)->head.lock;
  Problem problem;
  const std::string waits = ends_under_a_foreign_lock(
      lock, stage.writer().worker(), stage.keeper().worker(), [&] { stage.work_off_hints(); });
  problem.expect(waits.empty(), waits);
  problem.expect(stage.compactions() == 0, "compacted under a foreign lock");
  stage.let_grace_pass();
  stage.work_off_hints();
  problem.expect(stage.compactions() == 1, "a compaction that was given up is forgotten");
  return problem.text();
}

/// R22: a worker that waits for a record of a page holds no record that is later in universal
/// order.
inline std::string a_split_locks_its_records_in_order() {
  Stage stage;
  Problem problem;
  const Table table(Kind::tree, stage.empty_tree("splitting"));
  stage.commit_alone([&](Transaction& txn) { return insert_keys(txn, table, 0, 1); });
  BorderPage* page = page_with(stage, table.tree().storage(), 0);
  const auto count = [&] { return page->header.version().count(); };
  uint64_t next = 1;
  for (; page->has_room(count(), TreeRecord::bytes_with(8, 8)); ++next) {
    stage.commit_alone([&](Transaction& txn) { return insert_keys(txn, table, next, 1); });
  }
  // Records are placed from the end of the page downwards, so the last record has the lowest
  // universal name.
  const uint32_t records = count();
  McsWord& lowest = page->record(records - 1)->head.lock;
  WorkerContext& holder = stage.a().worker();
  const WorkerContext& waits = stage.b().worker();
  CHECK(holder.locker().lock(lowest, UniversalName()) == Status::ok);
  Other splitter([&] {
    stage.commit_alone([&](Transaction& txn) { return insert_keys(txn, table, next, 1); });
  });
  splitter.wait_until([&] { return is_last_waiter(lowest, waits); });
  problem.expect(!splitter.is_done(), "the page was split under a foreign lock");
  for (uint32_t slot = 0; slot + 1 < records; ++slot) {
    problem.expect(page->record(slot)->head.lock.is_unused(),
                   "holds a later record's lock while it waits for an earlier one's");
  }
  holder.locker().unlock(lowest);
  splitter.join();
  return problem.text();
}

/// R10: epochs pass while a transaction with a reserved record runs. A compaction does not elide
/// the record.
inline std::string a_reservation_outlives_its_epoch() {
  Reclaim stage;
  Problem problem;
  stage.insert(stage.keeper(), 0, 10);
  stage.erase(0, 8);
  stage.let_grace_pass();
  Transaction& writer = stage.writer();
  problem.expect(writer.begin(), Status::ok, "begin");
  problem.expect(stage.table().insert(writer, 20, 20), Status::ok, "insert");
  stage.let_grace_pass();
  stage.work_off_hints();
  problem.expect(stage.compactions() == 1, "the page was not compacted");
  problem.expect(writer.commit(), Status::ok, "commit of an insert over many epochs");
  problem.expect(stage.has(20), "the insert is lost");
  return problem.text();
}

/// R34: before the worker processes hints, their storage was dropped, or another storage has taken
/// its catalog slot.
inline std::string hints_of_a_dropped_storage(bool reused) {
  Reclaim stage;
  Problem problem;
  stage.insert(stage.keeper(), 0, 10);
  stage.erase(0, 8);
  stage.let_grace_pass();
  StorageControl& storage = stage.storage();
  if (reused) {
    storage.id += kMaxStorages;
  } else {
    storage.state.store(static_cast<uint32_t>(StorageState::dropping), std::memory_order_release);
  }
  stage.work_off_hints();
  problem.expect(stage.compactions() == 0, "compacted a page of a dropped storage");
  if (reused) storage.id -= kMaxStorages;
  return problem.text();
}

/// R43: an interior page passes its newest removed version on to the root that grows above it, and
/// to the page that replaces it.
inline std::string removed_versions_are_inherited_by_interior_pages() {
  Reclaim stage;
  Problem problem;
  const auto root = [&] {
    return tree_page(stage.cluster().view().resolve(stage.storage().root.load_acquire()));
  };
  uint64_t keys = 0;
  const auto grow = [&] {
    stage.insert(stage.keeper(), keys, keys + 10);
    keys += 10;
  };
  grow();
  const uint64_t of_border = Vid::make(1, 77).version();
  root()->header.max_removed_vid.store(of_border, std::memory_order_relaxed);
  while (root()->is_border()) grow();
  problem.expect(root()->header.max_removed_vid.load(std::memory_order_relaxed) >= of_border,
                 "a root has a lower newest removed version than the page that it has grown from");
  TreePage* before = root();
  const uint64_t of_root = Vid::make(1, Vid::kMaxOrdinal).version();
  before->header.max_removed_vid.store(of_root, std::memory_order_relaxed);
  while (root() == before && keys < 100'000) grow();
  problem.expect(root() != before, "the root was not rebuilt");
  problem.expect(root()->header.max_removed_vid.load(std::memory_order_relaxed) >= of_root,
                 "a rebuilt page has a lower newest removed version than the one before");
  return problem.text();
}

/// R44: the pointer to a new layer replaces a payload, so it names no snapshot page.
inline std::string a_layer_has_no_snapshot_page() {
  Reclaim stage;
  Problem problem;
  const MasterTree tree = stage.table().tree();
  const std::string payload(16, '\x55');
  const auto insert = [&](const std::string& key) {
    stage.commit(stage.keeper(), [&](Transaction& txn) {
      return tree.insert(txn, bytes_of_text(key), bytes_of_text(payload));
    });
  };
  insert("prefix01-one");
  BorderPage* page = stage.page_with(0);
  insert("prefix01-two");
  problem.expect(page->record(0)->head.load_acquire().is_next_layer(), "no layer was made");
  const DualPointer* pointer = page->record(0)->next_layer();
  problem.expect(pointer->snapshot_word.load(std::memory_order_relaxed) == 0,
                 "a new layer has a snapshot page");
  return problem.text();
}

/// R45: layers are removed, however deep they are, when nothing is left in them.
inline std::string deep_layers_are_dropped() {
  Reclaim stage;
  Problem problem;
  const MasterTree tree = stage.table().tree();
  const std::string prefix(80, 'p');
  for (const char* end : {"one", "two"}) {
    stage.commit(stage.keeper(), [&](Transaction& txn) {
      return tree.insert(txn, bytes_of_text(prefix + end), {});
    });
  }
  TreeStatistics statistics;
  problem.expect(check_tree(stage.cluster().view(), stage.storage(), statistics).empty(), "check");
  problem.expect(statistics.layers == 11, "the keys do not lie in the eleventh layer");
  for (const char* end : {"one", "two"}) {
    stage.commit(stage.keeper(),
                 [&](Transaction& txn) { return tree.erase(txn, bytes_of_text(prefix + end)); });
  }
  // Each round removes one layer.
  for (uint32_t layer = 0; layer <= 11; ++layer) {
    stage.let_grace_pass();
    stage.work_off_hints();
  }
  statistics = {};
  problem.expect(check_tree(stage.cluster().view(), stage.storage(), statistics).empty(), "check");
  problem.expect(statistics.layers == 1, "empty layers stay");
  problem.expect(statistics.tombstones == 0, "tombstones stay");
  return problem.text();
}

/// R45: the last deletes of a page come shortly after the hint of its first deletes.
inline std::string the_last_records_of_a_page_are_elided() {
  Reclaim stage;
  Problem problem;
  stage.insert(stage.keeper(), 0, 10);
  stage.erase(0, 8);
  stage.keeper().worker().leave();
  for (int i = 0; i < 3; ++i) stage.cluster().tick();
  stage.erase(8, 10);
  // The hint is due now; the last two tombstones are too young.
  stage.work_off_hints();
  problem.expect(stage.compactions() == 1, "the page was not compacted");
  stage.let_grace_pass();
  stage.work_off_hints();
  problem.expect(stage.page_with(0)->header.version().count() == 0, "tombstones stay");
  return problem.text();
}

/// R13: an insert changes the transaction's own sets only after it has unlocked the page, because
/// the sets may be large.
inline std::string own_sets_change_after_the_page_is_free() {
  Reclaim stage;
  Problem problem;
  stage.insert(stage.keeper(), 0, 10);
  Transaction& writer = stage.writer();
  problem.expect(writer.begin(), Status::ok, "begin");
  uint32_t at_unlock = 1;
  {
    const AtFirst at_point(SyncPoint::unlocking_page, [&] { at_unlock = writer.read_set_size(); });
    problem.expect(stage.table().insert(writer, 20, 20), Status::ok, "insert");
  }
  problem.expect(at_unlock == 0, "the read set has changed before the page was free");
  problem.expect(writer.read_set_size() == 1, "the reservation does not cover the absence");
  problem.expect(writer.commit(), Status::ok, "commit");
  return problem.text();
}

}  // namespace atolldb::test
