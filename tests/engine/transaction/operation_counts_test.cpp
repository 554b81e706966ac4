// Operations by storage: every record that is searched for, appended or scanned counts once.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "engine/array/array.h"
#include "engine/hash/hash.h"
#include "engine/mastertree/cursor.h"
#include "engine/sequential/sequential.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

Bytes text_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

class OperationCounts : public testing::Test {
 protected:
  OperationCounts() { std::printf("seed: none, nothing here is random\n"); }

  /// Runs the body as one transaction. Returns the operations that it has counted on the storage.
  template <typename Body>
  uint64_t operations(uint32_t storage_id, Body&& body, uint32_t worker = 0) {
    Counter& counter = cluster_.metrics(0, worker).storage_operations[storage_id % kMaxStorages];
    const uint64_t before = counter.get();
    EXPECT_EQ(cluster_.worker(worker).run(body), Status::ok);
    return counter.get() - before;
  }

  TestCluster cluster_{1, 2, {.clock = false}};
};

TEST_F(OperationCounts, OfAnArrayCountSearchesOneByOneAndInBatches) {
  const Array array(cluster_.create("array", StorageType::array, 8, 1000));
  const uint32_t id = array.handle().id();
  const std::array<uint64_t, 5> indexes = {1, 2, 3, 500, 999};
  std::array<uint64_t, 5> values{};
  std::array<RecordRef, 5> refs;
  const uint64_t one = 1;
  EXPECT_EQ(operations(id, [&](Transaction& txn) { return array.update(txn, 1, 0, 8, &one); }), 1u);
  EXPECT_EQ(operations(id, [&](Transaction& txn) { return array.get(txn, 1, values.data()); }), 1u);
  EXPECT_EQ(
      operations(id, [&](Transaction& txn) { return array.get_many(txn, indexes, values.data()); }),
      5u);
  EXPECT_EQ(operations(id,
                       [&](Transaction& txn) {
                         array.prefetch(txn, indexes);
                         const Status found = array.find_many(txn, indexes, refs);
                         return found == Status::ok ? array.get(txn, refs[0], 0, 8, values.data())
                                                    : found;
                       }),
            5u)
      << "a prefetch, and a read of a found record, search for nothing";
  EXPECT_EQ(operations(id,
                       [&](Transaction& txn) {
                         ArrayCursor cursor(array, txn, 10, 19, true);
                         uint64_t index = 0;
                         Status status = Status::ok;
                         while (status == Status::ok) status = cursor.next(index, values.data());
                         return status == Status::end_of_scan ? Status::ok : status;
                       }),
            10u);
}

TEST_F(OperationCounts, OfATreeCountSearchesAndScannedRecords) {
  const MasterTree tree(cluster_.create("tree", StorageType::mastertree));
  const uint32_t id = tree.handle().id();
  const std::vector<std::string> texts = {"a", "b", "c", "d", "e", "f"};
  std::vector<Bytes> keys;
  for (const std::string& text : texts) keys.push_back(text_bytes(text));
  EXPECT_EQ(operations(id, [&](Transaction& txn) { return tree.insert_many(txn, keys, keys); }),
            6u);
  EXPECT_EQ(operations(id, [&](Transaction& txn) { return tree.upsert(txn, keys[0], keys[1]); }),
            1u);
  std::array<std::byte, 8> out{};
  std::array<Status, 6> found{};
  EXPECT_EQ(operations(id,
                       [&](Transaction& txn) {
                         std::array<std::byte, 6 * 8> all{};
                         return tree.get_many(txn, keys, all.data(), 8, found);
                       }),
            6u);
  EXPECT_EQ(operations(id,
                       [&](Transaction& txn) {
                         uint32_t size = 0;
                         const Status status =
                             tree.get(txn, text_bytes("none"), out.data(), out.size(), size);
                         return status == Status::not_found ? Status::ok : status;
                       }),
            1u)
      << "a search without a result is one";
  EXPECT_EQ(operations(id,
                       [&](Transaction& txn) {
                         MasterTreeCursor cursor(tree, txn, {}, true);
                         for (int i = 0; i < 4; ++i) {
                           const Status status = cursor.next();
                           if (status != Status::ok) return status;
                         }
                         return Status::ok;
                       }),
            4u);
}

TEST_F(OperationCounts, OfHashAndSequentialStoragesCountLikeTheOthers) {
  const Hash hash(cluster_.create("hash", StorageType::hash));
  const Sequential heap(cluster_.create("heap", StorageType::sequential));
  EXPECT_EQ(operations(hash.storage().id,
                       [&](Transaction& txn) {
                         return hash.insert(txn, text_bytes("key"), text_bytes("value"));
                       }),
            1u);
  EXPECT_EQ(operations(heap.handle().id(),
                       [&](Transaction& txn) {
                         const Status status = heap.append(txn, text_bytes("1"));
                         return status == Status::ok ? heap.append(txn, text_bytes("2")) : status;
                       }),
            2u);
  EXPECT_EQ(operations(heap.handle().id(),
                       [&](Transaction& txn) {
                         SequentialCursor cursor(heap, txn);
                         Status status = Status::ok;
                         while (status == Status::ok) status = cursor.next();
                         return status == Status::end_of_scan ? Status::ok : status;
                       }),
            2u);
}

TEST_F(OperationCounts, BelongToTheThreadAndToStoragesThatExist) {
  const Array array(cluster_.create("array", StorageType::array, 8, 10));
  const uint32_t id = array.handle().id();
  uint64_t value = 0;
  const auto read = [&](Transaction& txn) { return array.get(txn, 3, &value); };
  EXPECT_EQ(operations(id, read, 1), 1u);
  EXPECT_EQ(cluster_.metrics(0, 0).storage_operations[id].get(), 0u);
  array.handle().control().state.store(static_cast<uint32_t>(StorageState::dropping),
                                       std::memory_order_seq_cst);
  EXPECT_EQ(operations(id,
                       [&](Transaction& txn) {
                         const Status status = read(txn);
                         return status == Status::storage_not_found ? Status::ok : status;
                       }),
            0u);
}

}  // namespace
}  // namespace atolldb::test
