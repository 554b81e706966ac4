// Tests of fold tables and of the sampler, compared with the changes that were added.
#include "engine/gleaner/fold_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/gleaner/compaction_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

using compaction::Change;
using compaction::Records;
using compaction::State;

constexpr uint64_t kTableBytes = 8192;

/// Adds all records in `order` to a table, and returns the ordinals of those that it returns.
std::vector<uint64_t> fold(Records& records, const std::vector<size_t>& order, FoldTable& table) {
  const LogBlock& block = records.memory.all()[0];
  std::vector<const LogRecord*> all;
  for_each_record(block, [&](const LogRecord& record) { all.push_back(&record); });
  for (const size_t i : order) {
    CHECK(table.has_room(gleaned_bytes(*all[i])));
    const uint64_t hash = hash_of(SortKey::of(*all[i]));
    table.prefetch_slot(hash);
    table.prefetch_record(hash);
    // Clears bits of the hash, so that different keys get equal hashes and searches are longer.
    table.add(*all[i], StorageType::mastertree, hash & ~uint64_t{0} << 9);
  }
  std::vector<uint64_t> ordinals;
  std::vector<SortKey> room(7);
  CHECK(table.count() + table.folded() == order.size());
  for (;;) {
    const std::span<SortKey> keys = table.read(room);
    if (keys.empty()) break;
    for (const SortKey& key : keys) ordinals.push_back(Vid(key.record->vid).ordinal());
  }
  CHECK(ordinals.size() == table.count());
  table.clear();
  CHECK(table.is_empty() && table.folded() == 0);
  return ordinals;
}

std::map<uint64_t, State> states(const std::vector<Change>& changes,
                                 const std::vector<uint64_t>& ordinals) {
  std::map<uint64_t, State> all;
  for (const uint64_t i : ordinals) all[changes[i].key].apply(changes[i], i);
  return all;
}

TEST(FoldTable, LeavesRecordsAsTheirChangesDo) {
  const uint64_t first = seed();
  FoldTable table(kTableBytes);
  uint64_t folded = 0;
  for (uint64_t round = 0; round < rounds(3000, 200'000); ++round) {
    std::mt19937_64 random(first + round);
    std::vector<Change> changes;
    const uint64_t keys = 1 + random() % 5;
    const bool has_same_length = random() % 2 == 0;
    for (uint64_t i = 0; i < 1 + random() % 40; ++i) {
      Change change = random() % 8 == 0 ? compaction::kInsert
                      : random() % 8 == 0
                          ? compaction::kErase
                          : compaction::update(static_cast<uint16_t>(random() % 3 * 4),
                                               static_cast<uint16_t>(random() % 16));
      if (has_same_length) change = compaction::update(0, 16);
      change.key = 1 + random() % keys;
      changes.push_back(change);
    }
    // Several streams: records are not added in the order of their VIDs.
    std::vector<size_t> order(changes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (random() % 2 == 0) std::ranges::shuffle(order, random);
    Records records(changes, random() % 2 == 0 ? 7 : 20);
    std::vector<uint64_t> kept = fold(records, order, table);
    std::ranges::sort(kept);
    std::vector<uint64_t> all(order.begin(), order.end());
    std::ranges::sort(all);
    ASSERT_TRUE(states(changes, kept) == states(changes, all)) << "ATOLL_SEED=" << first + round;
    folded += changes.size() - kept.size();
  }
  EXPECT_GT(folded, 1000u) << "few records were elided: the test has shown little";
}

TEST(FoldTable, KeepsAnInsertBeforeAnUpdate) {
  FoldTable table(kTableBytes);
  Records records({compaction::kInsert, compaction::update(0, 16)});
  EXPECT_EQ(fold(records, {0, 1}, table), (std::vector<uint64_t>{0, 1}));
  EXPECT_EQ(fold(records, {1, 0}, table), (std::vector<uint64_t>{1, 0}));
}

TEST(FoldTable, KeepsTheNewestOfUpdatesInAnyOrder) {
  FoldTable table(kTableBytes);
  Records records(
      {compaction::update(0, 16), compaction::update(0, 16), compaction::update(0, 16)});
  EXPECT_EQ(fold(records, {0, 1, 2}, table), (std::vector<uint64_t>{2}));
  EXPECT_EQ(fold(records, {2, 0, 1}, table), (std::vector<uint64_t>{2}));
  EXPECT_EQ(fold(records, {1, 2, 0}, table), (std::vector<uint64_t>{2}));
}

TEST(FoldTable, IsFullAtItsBytesAndAtItsNumberOfRecords) {
  // The limit on records assumes 48 bytes per record. Erases with keys of 8 bytes take only 32.
  FoldTable table(kTableBytes);
  BlockBuffer memory(1);
  LogBlock& block = memory.all()[0];
  const auto add = [&](uint64_t key) {
    begin_block(block, 1, 0);
    CHECK(add_record(block, LogType::erase, 4, Vid::make(1, 1).word(),
                     std::as_bytes(std::span(&key, 1)), {}, 0));
    const auto& record = *reinterpret_cast<const LogRecord*>(block.payload);
    table.add(record, StorageType::mastertree, hash_of(SortKey::of(record)));
  };
  for (uint64_t i = 0; i < FoldTable::max_records(kTableBytes); ++i) {
    ASSERT_TRUE(table.has_room(32));
    add(i);
  }
  EXPECT_FALSE(table.has_room(32));
  EXPECT_EQ(table.count(), kTableBytes / 48);

  FoldTable large(kTableBytes);
  EXPECT_TRUE(large.has_room(kTableBytes));
  EXPECT_FALSE(large.has_room(kTableBytes + 8));
}

TEST(RepeatSampler, CountsAboutTheRecordsWhoseKeysWereSeen) {
  std::vector<uint64_t> words(4 * 100'000);
  std::vector<SortKey> keys;
  for (uint64_t i = 0; i < 100'000; ++i) {
    auto& record = *reinterpret_cast<LogRecord*>(&words[4 * i]);
    record.key_bytes = 8;
    record.length = 32;
    const uint64_t key = __builtin_bswap64(i);
    std::memcpy(record.key(), &key, sizeof key);
    keys.push_back(SortKey::of(record));
  }
  RepeatSampler sampler;
  EXPECT_LT(sampler.count_repeats(3, keys), 1000u);
  const uint64_t repeats = sampler.count_repeats(3, keys);
  EXPECT_GT(repeats, 70'000u);
  EXPECT_LT(repeats, 130'000u);
  EXPECT_LT(sampler.count_repeats(4, keys), 1000u) << "keys of another storage";
}

}  // namespace
}  // namespace atolldb::test
