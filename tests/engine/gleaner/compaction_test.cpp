// What may be left out, and what not (R35).
#include "engine/gleaner/compaction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/gleaner/record_merge.h"
#include "engine/log/log_records.h"
#include "tests/engine/log/log_blocks.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

struct Change {
  LogType type;
  uint16_t offset = 0;
  uint16_t bytes = 0;
  uint64_t key = 1;
};
constexpr Change kInsert = {LogType::insert, 0, 16};
constexpr Change kErase = {LogType::erase};
constexpr Change update(uint16_t offset, uint16_t bytes) {
  return {LogType::update, offset, bytes};
}

/// Changes in the order of their VIDs, which are their places here.
struct Records {
  explicit Records(const std::vector<Change>& changes, size_t key_bytes = 8) : memory(1) {
    LogBlock& block = memory.all()[0];
    begin_block(block, 1, 0);
    for (size_t i = 0; i < changes.size(); ++i) {
      std::string key(key_bytes, 'k');
      key += static_cast<char>(changes[i].key);
      const std::string payload(changes[i].bytes, 'p');
      CHECK(add_record(block, changes[i].type, 4, Vid::make(1, i, i % 64).word(),
                       std::as_bytes(std::span(key)), std::as_bytes(std::span(payload)),
                       changes[i].offset));
    }
  }
  std::span<const std::byte> bytes() {
    const LogBlock& block = memory.all()[0];
    return {block.payload, block.header.length};
  }
  BlockBuffer memory;
};

/// Ordinals of the records that a mapper keeps.
std::vector<uint64_t> kept(const std::vector<Change>& changes, size_t key_bytes = 8) {
  Records records(changes, key_bytes);
  std::vector<SortKey> keys;
  for_each_record(records.memory.all()[0],
                  [&](const LogRecord& record) { keys.push_back(SortKey::of(record)); });
  std::sort(keys.begin(), keys.end());
  std::vector<uint64_t> ordinals;
  for (const SortKey& key : compact(keys)) ordinals.push_back(Vid(key.record->vid).ordinal());
  return ordinals;
}

/// Of those that a merge of all in one input keeps: it looks at a record's next one only.
std::vector<uint64_t> merged(const std::vector<Change>& changes) {
  Records records(changes);
  RecordMerge merge;
  merge.add(records.bytes());
  CHECK(merge.start().has_value());
  std::vector<uint64_t> ordinals;
  while (merge.current() != nullptr) {
    ordinals.push_back(Vid(merge.current()->vid).ordinal());
    CHECK(merge.advance().has_value());
  }
  CHECK(merge.left_out() + ordinals.size() == changes.size());
  return ordinals;
}

using Ordinals = std::vector<uint64_t>;

void expect_kept(const std::vector<Change>& changes, const Ordinals& ordinals) {
  EXPECT_EQ(kept(changes), ordinals);
  EXPECT_EQ(merged(changes), ordinals);
}

TEST(Compaction, AnUpdateCoversEarlierOnesOfNoLargerRange) {
  expect_kept({update(0, 8), update(0, 8), update(0, 8)}, {2});
  expect_kept({update(4, 2), update(0, 8)}, {1});
  expect_kept({update(0, 8), update(0, 4)}, {0, 1});
  expect_kept({update(0, 8), update(4, 8)}, {0, 1});
  expect_kept({update(0, 4), update(4, 4)}, {0, 1});
}

TEST(Compaction, AnUpdateCoversNeitherInsertNorErase) {
  expect_kept({kInsert, update(0, 16)}, {0, 1});
  expect_kept({kErase, update(0, 16)}, {0, 1});
}

TEST(Compaction, AnInsertOrEraseCoversAllBefore) {
  expect_kept({update(0, 16), kInsert, kErase, kInsert}, {3});
  expect_kept({kInsert, update(0, 8), kErase}, {2});
  EXPECT_EQ(kept({update(0, 16), update(20, 4), kErase}), Ordinals{2});
}

TEST(Compaction, TheLastEraseSurvivesAlone) {
  expect_kept({kErase}, {0});
  expect_kept({kErase, kErase}, {1});
  expect_kept({kInsert, kErase}, {1});
}

TEST(Compaction, WhatCameBehindTheLastInsertStays) {
  expect_kept({update(0, 4), kInsert, update(0, 4), update(8, 4)}, {1, 2, 3});
  EXPECT_EQ(kept({kInsert, update(0, 4), update(8, 4), update(0, 4)}), (Ordinals{0, 2, 3}));
}

TEST(Compaction, ManyDifferentUpdatesOfAKeyAreKept) {
  std::vector<Change> changes;
  Ordinals all;
  for (uint16_t i = 0; i < 40; ++i) {
    changes.push_back(update(static_cast<uint16_t>(8 * i), 8));
    all.push_back(i);
  }
  expect_kept(changes, all);
  // And an erase in front of more of them than are remembered.
  changes.push_back(kErase);
  EXPECT_EQ(kept(changes), Ordinals{40});
}

TEST(Compaction, KeysAreNotMixedUp) {
  for (const size_t key_bytes : {7u, 8u, 15u, 16u, 30u}) {
    EXPECT_EQ(kept({{LogType::insert, 0, 8, 1},
                    {LogType::erase, 0, 0, 2},
                    {LogType::erase, 0, 0, 3},
                    {LogType::update, 0, 8, 1},
                    {LogType::insert, 0, 8, 2}},
                   key_bytes),
              (Ordinals{0, 3, 4, 2}));
  }
}

TEST(Compaction, AppendsAllStay) {
  const Change append = {LogType::append, 0, 8};
  expect_kept({append, append, append}, {0, 1, 2});
}

/// A record as its changes leave it: whether it is there, and its bytes.
struct State {
  std::optional<bool> exists;  // unknown to this mapper before an insert or erase
  std::vector<uint64_t> bytes = std::vector<uint64_t>(24);  // who wrote each

  void apply(const Change& change, uint64_t ordinal) {
    if (change.type != LogType::update) {
      exists = change.type == LogType::insert;
      std::ranges::fill(bytes, 0);
    }
    for (uint32_t i = 0; i < change.bytes; ++i) bytes[change.offset + i] = ordinal + 1;
  }
  bool operator==(const State&) const = default;
};

TEST(Compaction, LeavesEveryRecordAsAllItsChangesDo) {
  const uint64_t first = seed();
  std::mt19937_64 random(first);
  for (uint64_t round = 0; round < rounds(2000, 200'000); ++round) {
    std::vector<Change> changes;
    for (uint64_t i = 0; i < 1 + random() % 12; ++i) {
      const auto offset = static_cast<uint16_t>(random() % 16);
      changes.push_back(random() % 6 == 0   ? kInsert
                        : random() % 6 == 0 ? kErase
                                            : update(offset, static_cast<uint16_t>(random() % 8)));
    }
    State all;
    for (size_t i = 0; i < changes.size(); ++i) all.apply(changes[i], i);
    for (const Ordinals& ordinals : {kept(changes), merged(changes)}) {
      State some;
      for (const uint64_t ordinal : ordinals) some.apply(changes[ordinal], ordinal);
      ASSERT_EQ(some, all) << "ATOLL_SEED=" << first << ", round " << round;
    }
  }
}

}  // namespace
}  // namespace atolldb::test
