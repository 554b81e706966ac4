// Histories in which snapshot pages are damaged, and repaired at the end (R56). Every snapshot
// succeeds, no read contradicts the model, and no record is lost for good.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/compose/page_output.h"
#include "engine/format/tree_page.h"
#include "tests/engine/compose/compose_rules.h"

namespace atolldb::test {

/// Flips a bit in pages of a stage's files, and flips it back.
class PageDamage {
 public:
  explicit PageDamage(SnapshotStage& stage) : stage_(stage) {}

  /// Damages one page of a file of any snapshot so far. Returns false if there was no file.
  bool damage(std::mt19937_64& random) {
    const uint32_t snapshot = 1 + static_cast<uint32_t>(random() % stage_.snapshot);
    const auto turn = static_cast<uint32_t>(random() % (SnapshotStage::kNodes + 1));
    const uint32_t node = turn == SnapshotStage::kNodes ? kCoordinator : turn;
    const std::string path = stage_.path(node, snapshot);
    auto file = stage_.files->open_for_reading(path);
    if (!file) return false;
    const uint64_t pages = *(*file)->size() / kPageBytes;
    flip(path, 1 + random() % (pages - 1));
    return true;
  }
  void flip(const std::string& path, uint64_t page) {
    const std::pair<std::string, uint64_t> place(path, page);
    if (damaged_.contains(place)) return;
    damaged_[place] = true;
    EXPECT_TRUE(stage_.power_cut().corrupt(path, page * kPageBytes + 1000, 1));
  }
  void repair() {
    for (const auto& [place, is_damaged] : damaged_) {
      EXPECT_TRUE(stage_.power_cut().corrupt(place.first, place.second * kPageBytes + 1000, 1));
    }
    damaged_.clear();
  }
  size_t size() const { return damaged_.size(); }

 private:
  SnapshotStage& stage_;
  std::map<std::pair<std::string, uint64_t>, bool> damaged_;
};

/// Checks that all readable records agree with the model. Adds the number of unreadable ranges to
/// `gaps`.
inline void check_readable(SnapshotStage& stage, const Model& expected, uint64_t& gaps) {
  uint64_t here = 0;
  uint64_t records = 0;
  const auto totals = walk_snapshot(
      stage.reader,
      {stage.storage.id, stage.storage.type, stage.storage.payload_bytes,
       stage.storage.record_count, stage.storage.base_root},
      stage.epoch,
      [&](const WalkedRecord& record) {
        const auto found = expected.find(std::string(record.key));
        const auto* payload = reinterpret_cast<const char*>(record.payload.data());
        const ModelRecord read{std::string(payload, record.payload.size()), record.vid};
        EXPECT_TRUE(found != expected.end() && found->second == read) << "wrong data";
        ++records;
        return Result<void>();
      },
      [&](const UnreadablePage&) { ++here; });
  ASSERT_TRUE(totals) << totals.error().message;
  if (here == 0) {
    EXPECT_EQ(records, expected.size()) << "lost without a word";
  }
  gaps += here;
}

/// Runs the histories on trees. Returns the number of unreadable ranges over all rounds.
inline uint64_t damaged_tree_rounds(uint64_t histories, uint64_t operations) {
  std::mt19937_64 seeds(seed());
  uint64_t gaps = 0;
  for (uint64_t i = 0; i < histories; ++i) {
    RandomHistory history(seeds());
    history.key_space = 1 + history.below(operations * 2);
    SnapshotStage stage(StorageType::mastertree);
    PageDamage damage(stage);
    std::mt19937_64 random(seeds());
    for (uint64_t round = 0; round < 8; ++round) {
      const auto logs = history.round(history.below(3) == 0 ? history.below(5) : operations,
                                      static_cast<uint32_t>(history.below(4) * 30));
      stage.choose_victims(history.below(UINT64_MAX));
      auto combined = stage.round(logs, history.partitions(5), history.epoch);
      if (!combined) ADD_FAILURE() << combined.error().message;
      if (!combined) return gaps;
      check_readable(stage, history.model, gaps);
      if (testing::Test::HasFailure()) return gaps;
      for (uint64_t n = history.below(4); n > 0; --n) damage.damage(random);
    }
    damage.repair();
    stage.rewrites = true;
    const auto last = history.round(3, 0);
    auto combined = stage.round(last, history.partitions(5), history.epoch);
    EXPECT_TRUE(combined) << combined.error().message;
    if (combined) check_stage(stage, history.model);
    if (testing::Test::HasFailure()) return gaps;
  }
  return gaps;
}

/// Like damaged_tree_rounds, for arrays.
inline uint64_t damaged_array_rounds(uint64_t histories, uint64_t most_records) {
  std::mt19937_64 random(seed());
  uint64_t gaps = 0;
  for (uint64_t i = 0; i < histories; ++i) {
    const uint64_t count = 1 + random() % most_records;
    const auto payload_bytes = static_cast<uint32_t>(1 + random() % 200);
    const uint64_t unit = ArrayShape(count, payload_bytes).records_below_root_child();
    SnapshotStage stage(StorageType::array, count, payload_bytes);
    PageDamage damage(stage);
    Model model;
    const auto take = [&](uint64_t epoch, uint64_t operations) {
      std::vector<GleanedLog> logs;
      for (uint64_t n = 0; n < operations; ++n) {
        const std::string key = big_endian(random() % count);
        const uint64_t offset = random() % payload_bytes;
        std::string part(random() % (payload_bytes - offset + 1), '\0');
        for (char& byte : part) byte = static_cast<char>(random());
        ModelRecord& record = model[key];
        record.payload.resize(payload_bytes);
        record.payload.replace(offset, part.size(), part);
        record.vid = Vid::make(epoch, n + 1);
        logs.push_back({LogType::update, key, static_cast<uint16_t>(offset), part, record.vid});
      }
      sort_gleaned(logs);
      std::vector<std::string> lows = {""};
      for (uint64_t low = unit; low < count; low += unit) {
        if (random() % 3 == 0 && lows.size() < 5) lows.push_back(big_endian(low));
      }
      auto combined = stage.round(logs, lows, epoch);
      EXPECT_TRUE(combined) << combined.error().message;
      return combined.has_value();
    };
    for (uint64_t epoch = 3; epoch < 11; ++epoch) {
      stage.choose_victims(random());
      if (!take(epoch, random() % 3 == 0 ? random() % 4 : random() % (count + 1))) return gaps;
      check_readable(stage, model, gaps);
      if (testing::Test::HasFailure()) return gaps;
      for (uint64_t n = random() % 3; n > 0; --n) damage.damage(random);
    }
    damage.repair();
    stage.rewrites = true;
    if (take(11, 1)) check_stage(stage, model);
    if (testing::Test::HasFailure()) return gaps;
  }
  return gaps;
}

/// Like damaged_tree_rounds, for sequential storages, whose records are in the order of their
/// appends.
inline uint64_t damaged_sequential_rounds(uint64_t histories, uint64_t most_appends) {
  std::mt19937_64 random(seed());
  uint64_t gaps = 0;
  for (uint64_t i = 0; i < histories; ++i) {
    SnapshotStage stage(StorageType::sequential);
    PageDamage damage(stage);
    std::map<uint64_t, std::string> appended;  // by the word of the VID
    const auto take = [&](uint64_t epoch) {
      std::vector<GleanedLog> logs;
      for (uint64_t n = random() % most_appends; n > 0; --n) {
        const Vid vid = Vid::make(epoch, n);
        std::string payload(random() % 200, static_cast<char>(random()));
        logs.push_back({LogType::append, big_endian(epoch) + big_endian(n), 0, payload, vid});
        appended[vid.word()] = payload;
      }
      sort_gleaned(logs);
      std::vector<std::string> lows = {""};
      if (logs.size() > 1) lows.push_back(logs[logs.size() / 2].key);
      auto combined = stage.round(logs, lows, epoch);
      EXPECT_TRUE(combined) << combined.error().message;
    };
    const auto check = [&] {
      uint64_t here = 0;
      std::map<uint64_t, std::string> found;
      const auto totals = walk_snapshot(
          stage.reader, {stage.storage.id, stage.storage.type, 0, 0, stage.storage.base_root},
          stage.epoch,
          [&](const WalkedRecord& record) {
            const auto* payload = reinterpret_cast<const char*>(record.payload.data());
            const uint64_t vid = record.vid.word();
            EXPECT_TRUE(found.emplace(vid, std::string(payload, record.payload.size())).second);
            EXPECT_EQ(found[vid], appended[vid]) << "wrong data";
            return Result<void>();
          },
          [&](const UnreadablePage&) { ++here; });
      ASSERT_TRUE(totals) << totals.error().message;
      if (here == 0) {
        ASSERT_EQ(found, appended) << "lost without a word";
      }
      gaps += here;
    };
    for (uint64_t epoch = 3; epoch < 12; ++epoch) {
      stage.choose_victims(random());
      take(epoch);
      check();
      if (testing::Test::HasFailure()) return gaps;
      for (uint64_t n = random() % 3; n > 0; --n) damage.damage(random);
    }
    damage.repair();
    stage.rewrites = true;
    take(12);
    const uint64_t before = gaps;
    check();
    EXPECT_EQ(gaps, before) << "not all is repaired";
    if (testing::Test::HasFailure()) return gaps;
  }
  return gaps;
}

/// A tree of 2,000 records in several pages, with its own stage. Some pages are damaged.
struct DamagedTree {
  DamagedTree() : stage(StorageType::mastertree), damage(stage) {
    std::vector<GleanedLog> logs;
    for (uint64_t i = 0; i < 2000; ++i) write(i, LogType::insert, 5, logs);
    take(logs, 5);
  }
  void write(uint64_t key, LogType type, uint64_t epoch, std::vector<GleanedLog>& logs) {
    const Vid vid = Vid::make(epoch, key + 1);
    model[big_endian(key)] = {"value " + std::to_string(key) + " of " + std::to_string(epoch), vid};
    logs.push_back({type, big_endian(key), 0, model[big_endian(key)].payload, vid});
  }
  void take(const std::vector<GleanedLog>& logs, uint64_t epoch) {
    auto combined = stage.round(logs, {""}, epoch);
    ASSERT_TRUE(combined) << combined.error().message;
  }
  /// Returns the page that contains the record.
  SnapshotPointer page_of(uint64_t key) {
    SnapshotPointer at = stage.storage.base_root;
    PageBuffer page;
    for (;;) {
      const auto read = stage.reader.read(at, &page.header());
      EXPECT_TRUE(read) << read.error().message;
      if (!read || page.header().type == PageType::mastertree_border) return at;
      auto* interior = page.as<InteriorPage>();
      const uint32_t slot = interior->find(key, interior->header.version().count());
      at = SnapshotPointer(interior->children[slot].snapshot_word.load(std::memory_order_relaxed));
    }
  }
  void flip(SnapshotPointer page) {
    damage.flip(stage.path(page.node(), page.snapshot()), page.page());
  }

  SnapshotStage stage;
  PageDamage damage;
  Model model;
};

}  // namespace atolldb::test
