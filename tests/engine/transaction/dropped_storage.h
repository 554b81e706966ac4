// Operations through handles that outlive their storage (R34).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "engine/sequential/sequential.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// A job looks up its storages, and then the storages are dropped. Every operation that looks for
/// records must report this. `reused`: other storages have taken their catalog slots by then.
inline std::string operations_on_dropped_storages(bool reused) {
  Stage stage;
  Problem problem;
  StorageControl& heap_storage = stage.cluster().create("heap", StorageType::sequential);
  const MasterTree tree = stage.tree().tree();
  const Array array = stage.array().array();
  const Sequential heap(heap_storage);
  const std::array<StorageControl*, 3> storages = {&tree.storage(), &stage.array().storage(),
                                                   &heap_storage};
  for (StorageControl* storage : storages) {
    if (reused) storage->id += kMaxStorages;
    storage->state.store(
        static_cast<uint32_t>(reused ? StorageState::ready : StorageState::dropping),
        std::memory_order_release);
  }

  Transaction& a = stage.a();
  problem.expect(a.begin(), Status::ok, "begin");
  const auto gone = [&](Status status, const char* what) {
    problem.expect(status, Status::storage_not_found, what);
  };
  const auto key = ordered_key(30);
  const Bytes keys[] = {key};
  const Bytes payloads[] = {key};
  uint64_t value = 0;
  uint32_t bytes = 0;
  RecordRef ref;
  gone(tree.get(a, key, &value, 8, bytes), "get");
  gone(tree.get_range(a, key, 0, 8, &value), "get_range");
  gone(tree.insert(a, key, key), "insert");
  gone(tree.insert_many(a, keys, payloads), "insert_many");
  gone(tree.upsert(a, key, key), "upsert");
  gone(tree.update(a, key, key), "update");
  gone(tree.update_range(a, key, 0, key), "update_range");
  gone(tree.increment(a, key, 0, IncrementType::u64, &value), "increment");
  gone(tree.erase(a, key), "erase");
  MasterTreeCursor cursor(tree, a, {}, true);
  gone(cursor.next(), "cursor");
  gone(cursor.next(), "cursor: a call after the error");
  const uint64_t index = 30;
  gone(array.get(a, index, &value), "array: get");
  gone(array.get_for_update(a, index, 0, 8, &value, ref), "array: get_for_update");
  gone(array.get_many(a, {&index, 1}, &value), "array: get_many");
  gone(array.find_many(a, {&index, 1}, {&ref, 1}), "array: find_many");
  gone(array.update(a, index, 0, 8, &value), "array: update");
  gone(array.increment(a, index, 0, IncrementType::u64, &value), "array: increment");
  gone(heap.append(a, key), "append");
  gone(SequentialCursor(heap, a).next(), "scan of a heap");
  a.rollback(Status::user_abort);
  return problem.text();
}

}  // namespace atolldb::test
