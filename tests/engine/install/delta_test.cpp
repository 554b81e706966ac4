// Delta trees: records of cold ranges that have changed since the snapshot (R76 to R80, R82).
#include <gtest/gtest.h>

#include <functional>

#include "engine/mastertree/prefetch.h"
#include "tests/engine/install/cold_tree.h"
#include "tests/engine/install/delta_transfers.h"
#include "tests/engine/install/open_record_rules.h"

namespace atolldb::test {
namespace {

TEST(DeltaTrees, KeepSumsWhileTheyAreDrained) {
  EXPECT_EQ(delta_transfers(1, rounds(20, 400), 100), "");
  EXPECT_EQ(delta_transfers(3, rounds(20, 400), 100), "");
}

#ifndef ATOLL_STRESS

TEST(DeltaTrees, HoldNoPageOfTheSnapshot) {
  ColdTree test(2);
  ASSERT_EQ(test.prepare(), "");
  for (uint64_t key = 0; key < ColdTree::kRecords; key += 100) {
    ASSERT_EQ(test.write(1, key, "new"), Status::ok);
  }
  TreeStatistics statistics;
  ASSERT_EQ(test.warm.check(statistics), "");
  EXPECT_EQ(statistics.delta_records, 10u);
  EXPECT_EQ(statistics.delta_pages, 1u);
  EXPECT_EQ(statistics.border_pages, 0u);
}

TEST(DeltaTrees, AreEmptyOnceTheSnapshotHasTheirRecords) {
  ColdTree test(2);
  ASSERT_EQ(test.prepare(), "");
  std::vector<std::pair<uint64_t, std::string>> changes;
  for (uint64_t key = 0; key < ColdTree::kRecords; ++key) {
    ASSERT_EQ(test.write(1, key, "new"), Status::ok);
    changes.emplace_back(key, "new");
  }
  TreeStatistics statistics;
  ASSERT_EQ(test.warm.check(statistics), "");
  EXPECT_EQ(statistics.delta_records, ColdTree::kRecords);
  EXPECT_GE(statistics.delta_pages, 10u);
  ASSERT_EQ(test.take(changes), "");
  ASSERT_EQ(test.warm.install(drop_all), "");
  EXPECT_EQ(test.warm.report.drained, ColdTree::kRecords);
  ASSERT_EQ(test.warm.check(statistics), "");
  EXPECT_EQ(statistics.delta_records, 0u);
  EXPECT_LE(statistics.delta_pages, 2u);
  EXPECT_EQ(test.value_of(7), "new");
}

/// R82: a write that replaces the whole record reads no page of the snapshot. A key whose last byte
/// is zero may share its slice with others in the snapshot, so its page is read.
TEST(DeltaTrees, GetBlindWritesWithoutARead) {
  ColdTree test(2);
  ASSERT_EQ(test.prepare(), "");
  const auto reads = [&] { return test.warm.cluster.metrics(0, 1).snapshot_reads.get(); };
  const auto upsert = [&](uint64_t key) {
    return test.warm.cluster.worker(1).run([&](Transaction& txn) {
      return test.tree.upsert(txn, bytes_of(big_endian(key)), bytes_of("mine"));
    });
  };
  const uint64_t before = reads();
  for (uint64_t key = 1; key < 256; ++key) ASSERT_EQ(upsert(key), Status::ok);
  EXPECT_EQ(reads(), before);
  ASSERT_EQ(upsert(256), Status::ok);
  EXPECT_GT(reads(), before);
  EXPECT_EQ(test.delta_records(), 256u);
  for (const uint64_t key : {1ull, 255ull, 256ull}) EXPECT_EQ(test.value_of(key), "mine");
  EXPECT_EQ(test.scan(254, 258), "mine mine mine old ");
}

TEST(DeltaTrees, HideNothingByOpenRecords) { EXPECT_EQ(open_records_hide_nothing(), ""); }
TEST(DeltaTrees, CloseOpenRecords) { EXPECT_EQ(open_records_are_closed(), ""); }
TEST(DeltaTrees, KeepOwnOpenRecordsUsable) { EXPECT_EQ(own_open_records_stay_usable(), ""); }
TEST(DeltaTrees, ShowSnapshotWritesWhatOpenRecordsHide) {
  for (const bool late : {false, true}) {
    EXPECT_EQ(snapshot_writes_notice_what_open_records_hide(late), "");
  }
}
TEST(DeltaTrees, KeepTheVersionOfOwnOpenRecords) {
  EXPECT_EQ(own_open_records_keep_the_version(), "");
}

TEST(DeltaTrees, KeepRecordsThatAreNewerThanTheSnapshot) {
  ColdTree test(2);
  ASSERT_EQ(test.prepare(), "");
  ASSERT_EQ(test.write(1, 5, "new"), Status::ok);
  ASSERT_EQ(test.take({{5, "new"}}), "");
  ASSERT_EQ(test.write(1, 6, "newer"), Status::ok);
  ASSERT_EQ(test.warm.install(drop_all), "");
  EXPECT_EQ(test.warm.report.drained, 1u);
  EXPECT_EQ(test.delta_records(), 1u);
  EXPECT_EQ(test.value_of(5), "new");
  EXPECT_EQ(test.value_of(6), "newer");
}

/// R80: so many keys are inserted into a cold range that the snapshot needs several pages for it.
TEST(DeltaTrees, RangesThatGrowAreDivided) {
  ColdTree test(2);
  ASSERT_EQ(test.prepare(), "");
  std::vector<std::pair<uint64_t, std::string>> changes;
  for (uint64_t key = ColdTree::kRecords; key < 20 * ColdTree::kRecords; ++key) {
    ASSERT_EQ(test.warm.cluster.worker(1).run([&](Transaction& txn) {
      return test.tree.insert(txn, bytes_of(big_endian(key)), bytes_of("new"));
    }),
              Status::ok);
    changes.emplace_back(key, "new");
  }
  ASSERT_EQ(test.take(changes), "");
  ASSERT_EQ(test.warm.install(drop_all), "");
  EXPECT_GT(test.warm.report.divided, 100u);
  EXPECT_EQ(test.warm.report.oldest_left, InstallReport::kNoSnapshot);
  EXPECT_EQ(test.warm.report.drained, 19 * ColdTree::kRecords);
  EXPECT_EQ(test.delta_records(), 0u);
  EXPECT_EQ(test.value_of(999), "old");
  EXPECT_EQ(test.value_of(1000), "new");
  EXPECT_EQ(test.value_of(19'999), "new");
  EXPECT_EQ(test.scan(998, 1002), "old old new new ");
  EXPECT_EQ(test.scan(998, 1002, false), "new new old old ");
}

/// R76: after a drain, pages are copied up again where the delta tree has no records.
TEST(DeltaTrees, ClearTheirMarksOnceTheyAreEmpty) {
  ColdTree test(2);
  ASSERT_EQ(test.prepare(), "");
  ASSERT_EQ(test.write(1, 5, "new"), Status::ok);
  test.warm.storage.uses_delta.store(0, std::memory_order_relaxed);
  ASSERT_EQ(test.write(1, 6, "new"), Status::ok);
  EXPECT_EQ(test.delta_records(), 2u) << "the range is marked";
  ASSERT_EQ(test.take({{5, "new"}, {6, "new"}}), "");
  ASSERT_EQ(test.warm.install(drop_all), "");
  EXPECT_EQ(test.delta_records(), 0u);
  ASSERT_EQ(test.write(1, 7, "new"), Status::ok);
  TreeStatistics statistics;
  ASSERT_EQ(test.warm.check(statistics), "");
  EXPECT_EQ(statistics.delta_records, 0u);
  EXPECT_EQ(statistics.border_pages, 1u);
  EXPECT_EQ(test.scan(4, 9), "old new new new old ");
}

/// Record 5 is in the delta tree, and the cache is full of pages with keys below 9,000.
void prepare_full_cache(ColdTree& test) {
  ASSERT_EQ(test.prepare_large(), "");  // many more pages than the cache has frames
  ASSERT_EQ(test.write(1, 5, "new"), Status::ok);
  for (uint64_t key = 1'000; key < 9'000; key += 50) EXPECT_EQ(test.value_of(key), "old");
  test.warm.cluster.worker(1).context->leave();
}

/// A prefetch of cold keys reads their pages together, but not those of records in the delta tree.
TEST(DeltaTrees, APrefetchReadsTheColdPagesThatAreNeeded) {
  ColdTree test(2);
  prepare_full_cache(test);
  const auto misses = [&] { return test.warm.cache().statistics().misses; };
  const uint64_t before = misses();
  Transaction& txn = *test.warm.cluster.worker(0).transaction;
  ASSERT_EQ(txn.begin(), Status::ok);
  const std::string keys[] = {big_endian(5), big_endian(15'000), big_endian(20'000)};
  const std::vector<Bytes> views = {bytes_of(keys[0]), bytes_of(keys[1]), bytes_of(keys[2])};
  test.tree.prefetch(txn, views);
  EXPECT_EQ(misses(), before + 2);
  EXPECT_EQ(txn.pointer_set_size() + txn.page_version_set_size() + txn.read_set_size(), 0u);
  std::string value;
  for (const uint64_t key : {15'000u, 20'000u}) {
    ASSERT_EQ(ColdTree::read(txn, test.tree, key, value), Status::ok);
    EXPECT_EQ(value, "old");
  }
  EXPECT_EQ(misses(), before + 2);
  ASSERT_EQ(txn.commit(), Status::ok);
}

/// A batch collects the pages of several look-ups, which may be of several storages.
TEST(DeltaTrees, ABatchOfKeysReadsTheirColdPagesTogether) {
  ColdTree test(2);
  prepare_full_cache(test);
  const auto misses = [&] { return test.warm.cache().statistics().misses; };
  const uint64_t before = misses();
  Transaction& txn = *test.warm.cluster.worker(0).transaction;
  ASSERT_EQ(txn.begin(), Status::ok);
  {
    ColdBatch batch(txn.worker());
    ASSERT_TRUE(batch.is_wanted());
    for (const uint64_t key : {5u, 15'000u, 20'000u, 20'000u}) {
      add_cold(txn, test.tree, bytes_of(big_endian(key)), batch);
    }
    EXPECT_EQ(misses(), before) << "the batch reads at its end";
  }
  EXPECT_EQ(misses(), before + 2);
  EXPECT_EQ(txn.pointer_set_size() + txn.page_version_set_size() + txn.read_set_size(), 0u);
  std::string value;
  for (const uint64_t key : {15'000u, 20'000u}) {
    ASSERT_EQ(ColdTree::read(txn, test.tree, key, value), Status::ok);
    EXPECT_EQ(value, "old");
  }
  EXPECT_EQ(misses(), before + 2);
  while (txn.worker().expects_snapshot_misses()) {
  }
  EXPECT_FALSE(ColdBatch(txn.worker()).is_wanted());
  ASSERT_EQ(txn.commit(), Status::ok);
}

/// All records of a slice must fit in a page of the next snapshot, whether they are in the delta
/// tree or in the snapshot.
TEST(DeltaTrees, RecordsOfASliceFitInAPageTogether) {
  ColdTree test(2);
  ASSERT_EQ(test.prepare(), "");
  const std::string key = "a";
  const std::string longer("a\0", 2);
  const std::string large(MasterTree::kMaxPayloadBytes, 'x');
  const auto run = [&](const std::function<Status(Transaction&)>& body) {
    return test.warm.cluster.worker(1).run(body);
  };
  const auto insert = [&](const std::string& which, const std::string& payload) {
    return run([&](Transaction& txn) {
      return test.tree.insert(txn, bytes_of(which), bytes_of(payload));
    });
  };
  ASSERT_EQ(insert(key, large), Status::ok);
  test.warm.cluster.worker(1).context->leave();
  const uint64_t epoch = test.warm.settle();
  ASSERT_EQ(test.warm.take({{LogType::insert, key, 0, large, Vid::make(epoch, 1)}}, epoch, 0), "");
  ASSERT_EQ(test.warm.install(drop_all), "");
  ASSERT_EQ(test.delta_records(), 0u);
  EXPECT_EQ(insert(longer, large), Status::payload_too_long);
  EXPECT_EQ(insert(longer, "small"), Status::ok);
  const auto grow = [&](Transaction& txn) {
    return test.tree.update(txn, bytes_of(longer), bytes_of(large));
  };
  EXPECT_EQ(run(grow), Status::payload_too_long);
  ASSERT_EQ(run([&](Transaction& txn) { return test.tree.erase(txn, bytes_of(key)); }), Status::ok);
  EXPECT_EQ(run(grow), Status::ok) << "a deleted record takes no room";
  EXPECT_EQ(insert(key, large), Status::payload_too_long);
}

/// R14: a scan that has read ahead in the tree and in the delta tree sees the writes that its own
/// transaction plans meanwhile.
TEST(DeltaTrees, ScansSeeOwnWritesThatComeAfterTheyHaveReadAhead) {
  ColdTree test(2);
  ASSERT_EQ(test.prepare(), "");
  ASSERT_EQ(test.write(1, 5, "new"), Status::ok);
  ASSERT_EQ(test.erase(1, 7), Status::ok);
  const std::string low = big_endian(4);
  const std::string high = big_endian(10);
  std::string found;
  const Status status = test.warm.cluster.worker(0).run([&](Transaction& txn) {
    found.clear();
    MasterTreeCursor cursor(
        test.tree, txn,
        {.low = bytes_of(low), .has_low = true, .high = bytes_of(high), .has_high = true}, true);
    Status one = cursor.next();
    if (one != Status::ok) return one;
    for (const auto& plan : std::initializer_list<std::function<Status()>>{
             [&] { return test.tree.erase(txn, bytes_of(big_endian(5))); },
             [&] { return test.tree.update(txn, bytes_of(big_endian(6)), bytes_of("mine")); },
             [&] { return test.tree.insert(txn, bytes_of(big_endian(7)), bytes_of("back")); }}) {
      one = plan();
      if (one != Status::ok) return one;
    }
    for (one = cursor.next(); one == Status::ok; one = cursor.next()) {
      char buffer[8];
      one = cursor.get(buffer, sizeof buffer);
      if (one != Status::ok) return one;
      found += std::string(buffer, cursor.payload_bytes()) + ' ';
      if (cursor.key()[7] == std::byte{8}) one = test.tree.erase(txn, bytes_of(big_endian(9)));
      if (one != Status::ok) return one;
    }
    return one == Status::end_of_scan ? Status::ok : one;
  });
  EXPECT_EQ(status, Status::ok);
  EXPECT_EQ(found, "mine back old ");
}

/// Writes the record of the snapshot at which a scan stands.
using OwnWrite = std::function<Status(Transaction&, MasterTreeCursor&, Bytes key)>;

/// Moves a cursor to record 5, writes the record, and returns what the cursor then reads.
std::string cursor_value_after(ColdTree& test, const OwnWrite& write) {
  const std::string low = big_endian(5);
  std::string value;
  const Status status = test.warm.cluster.worker(0).run([&](Transaction& txn) {
    MasterTreeCursor cursor(test.tree, txn, {.low = bytes_of(low), .has_low = true}, true);
    Status one = cursor.next();
    if (one == Status::ok) one = write(txn, cursor, bytes_of(low));
    if (one != Status::ok) return one;
    char buffer[32];
    one = cursor.get(buffer, sizeof buffer);
    if (is_abort(one)) return one;
    value = one == Status::ok ? std::string(buffer, cursor.payload_bytes())
                              : std::string(to_string(one));
    return Status::ok;
  });
  return status == Status::ok ? value : std::string(to_string(status));
}

/// R14: `get` sees the writes that its own transaction has planned to the record since `next`, in
/// storages with and without delta trees.
TEST(DeltaTrees, CursorsSeeOwnWritesToTheirCurrentRecord) {
  const MasterTree* tree = nullptr;
  const std::pair<const char*, OwnWrite> writes[] = {
      {"oXd",
       [&](Transaction& txn, MasterTreeCursor& cursor, Bytes key) {
         return tree->update_range(txn, cursor.ref(), key, 1, bytes_of("X"));
       }},
      {"not_found", [&](Transaction& txn, MasterTreeCursor& cursor,
                        Bytes key) { return tree->erase(txn, cursor.ref(), key); }},
      {"longer than before", [&](Transaction& txn, MasterTreeCursor&, Bytes key) {
         return tree->upsert(txn, key, bytes_of("longer than before"));
       }}};
  for (const bool uses_delta : {true, false}) {
    for (const auto& [expected, write] : writes) {
      ColdTree test(2);
      ASSERT_EQ(test.prepare(), "");
      test.warm.storage.uses_delta.store(uses_delta ? 1 : 0, std::memory_order_relaxed);
      tree = &test.tree;
      const std::string value = cursor_value_after(test, write);
      EXPECT_EQ(value, expected) << (uses_delta ? "delta" : "pages");
      EXPECT_EQ(test.value_of(5), expected);
    }
  }
}

TEST(DeltaTrees, GiveTheirPagesBackWithTheStorage) {
  ColdTree test(2);
  ASSERT_EQ(test.prepare(), "");
  for (uint64_t key = 0; key < 500; ++key) ASSERT_EQ(test.write(1, key, "new"), Status::ok);
  TreeStatistics statistics;
  ASSERT_EQ(test.warm.check(statistics), "");
  WorkerContext& worker = *test.warm.cluster.worker(1).context;
  worker.enter();
  EXPECT_EQ(release_storage(worker, test.warm.storage),
            statistics.pages() + statistics.delta_pages);
  worker.leave();
  EXPECT_TRUE(test.warm.storage.delta_root.load_acquire().is_null());
}

#endif

}  // namespace
}  // namespace atolldb::test
