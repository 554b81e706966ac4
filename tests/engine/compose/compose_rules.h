// Bodies of tests of composers. Each round composes a snapshot from a random log, on top of the
// previous snapshot, and compares it with a plain map. The tests with ordinary and with tiny pages
// share them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "engine/format/array_page.h"
#include "tests/engine/compose/random_history.h"
#include "tests/engine/compose/snapshot_stage.h"
#include "tests/support/seed.h"

namespace atolldb::test {

inline void expect_same(const Model& found, const Model& expected) {
  ASSERT_EQ(found.size(), expected.size());
  auto at = expected.begin();
  for (const auto& [key, record] : found) {
    ASSERT_EQ(key, at->first);
    ASSERT_EQ(record, at->second) << "key of " << key.size() << " bytes";
    ++at;
  }
}

inline void check_stage(SnapshotStage& stage, const Model& expected) {
  Model found;
  auto totals = stage.read_all(found);
  ASSERT_TRUE(totals) << totals.error().message;
  ASSERT_NO_FATAL_FAILURE(expect_same(found, expected));
}

/// Checks the files of a snapshot (R67, R68). The snapshot can be read without the files that its
/// metadata do not list. No file of a victim is listed. The counts of live pages equal those of a
/// walk.
inline void check_files(SnapshotStage& stage, const std::vector<uint32_t>& victims) {
  ASSERT_TRUE(stage.close_unneeded());
  const std::vector<uint32_t> left = snapshots_of(stage.metadata.files);
  for (const uint32_t victim : victims) {
    EXPECT_FALSE(std::ranges::binary_search(left, victim)) << "victim " << victim;
  }
  EXPECT_TRUE(stage.metadata.uncounted.empty());
  const auto counted = stage.check_counts();
  ASSERT_TRUE(counted) << counted.error().message;
}

inline void tree_rounds_against_a_map(uint64_t histories, uint64_t operations) {
  std::mt19937_64 seeds(seed());
  for (uint64_t i = 0; i < histories; ++i) {
    RandomHistory history(seeds());
    history.key_space = 1 + history.below(operations * 2);
    SnapshotStage stage(StorageType::mastertree);
    const uint64_t rounds_of_it = 3 + history.below(5);
    for (uint64_t round = 0; round < rounds_of_it; ++round) {
      const bool is_clearing = history.below(8) == 0;
      const auto erase_percent = static_cast<uint32_t>(history.below(4) * 30);
      const auto logs =
          is_clearing
              ? history.erase_all()
              : history.round(history.below(4) == 0 ? history.below(5) : operations, erase_percent);
      stage.choose_victims(history.below(UINT64_MAX));
      const std::vector<uint32_t> victims = stage.victims;
      auto combined = stage.round(logs, history.partitions(5), history.epoch);
      ASSERT_TRUE(combined) << combined.error().message;
      ASSERT_NO_FATAL_FAILURE(check_files(stage, victims));
      // A tree without records may have a root, because empty pages may remain at the ends of their
      // parents.
      ASSERT_TRUE(!combined->root.is_null() || history.model.empty());
      ASSERT_NO_FATAL_FAILURE(check_stage(stage, history.model))
          << "history " << i << " round " << round;
    }
  }
}

inline void array_rounds_against_a_map(uint64_t histories, uint64_t most_records) {
  std::mt19937_64 random(seed());
  for (uint64_t i = 0; i < histories; ++i) {
    const uint64_t count = 1 + random() % most_records;
    const auto payload_bytes = static_cast<uint32_t>(1 + random() % 200);
    const ArrayShape shape(count, payload_bytes);
    const uint64_t unit = shape.records_below_root_child();
    SnapshotStage stage(StorageType::array, count, payload_bytes);
    Model model;
    for (uint64_t epoch = 3; epoch < 8; ++epoch) {
      std::vector<GleanedLog> logs;
      const uint64_t operations = random() % 3 == 0 ? random() % 4 : random() % (count + 1);
      for (uint64_t n = 0; n < operations; ++n) {
        const std::string key = big_endian(random() % count);
        const uint64_t offset = random() % payload_bytes;
        std::string part(random() % (payload_bytes - offset + 1), '\0');
        for (char& byte : part) byte = static_cast<char>(random());
        const Vid vid = Vid::make(epoch, n + 1);
        ModelRecord& record = model[key];
        record.payload.resize(payload_bytes);
        record.payload.replace(offset, part.size(), part);
        record.vid = vid;
        logs.push_back({LogType::update, key, static_cast<uint16_t>(offset), part, vid});
      }
      sort_gleaned(logs);
      std::vector<std::string> lows = {""};
      for (uint64_t low = unit; low < count; low += unit) {
        if (random() % 3 == 0 && lows.size() < 5) lows.push_back(big_endian(low));
      }
      stage.choose_victims(random());
      const std::vector<uint32_t> victims = stage.victims;
      auto combined = stage.round(logs, lows, epoch);
      ASSERT_TRUE(combined) << combined.error().message;
      ASSERT_NO_FATAL_FAILURE(check_files(stage, victims));
      ASSERT_NO_FATAL_FAILURE(check_stage(stage, model)) << "history " << i << " epoch " << epoch;
    }
  }
}

/// Each snapshot has the appends of all rounds, with unchanged payloads.
inline void sequential_rounds_keep_all_appends(uint64_t rounds_of_it, uint64_t most_appends) {
  std::mt19937_64 random(seed());
  SnapshotStage stage(StorageType::sequential);
  std::vector<ModelRecord> expected;
  uint64_t records = 0;
  for (uint64_t round = 0; round < rounds_of_it; ++round) {
    const uint64_t epoch = 3 + 2 * round;
    std::vector<GleanedLog> logs;
    const uint64_t appends = random() % 4 == 0 ? 0 : random() % most_appends;
    for (uint64_t n = 0; n < appends; ++n) {
      const Vid vid = Vid::make(epoch + n * 2 / (appends + 1), n + 1);
      std::string payload(random() % 10 == 0 ? random() % 2049 : random() % 100, '\0');
      for (char& byte : payload) byte = static_cast<char>(random());
      std::string key = big_endian(vid.epoch()) + big_endian(n);
      logs.push_back({LogType::append, key, 0, payload, vid});
      expected.push_back({payload, vid});
    }
    sort_gleaned(logs);
    // Composes two partitions, one per node. The second one begins in the middle of the log.
    std::vector<std::string> lows = {""};
    if (logs.size() > 1) lows.push_back(logs[logs.size() / 2].key);
    stage.choose_victims(random());
    const std::vector<uint32_t> victims = stage.victims;
    stage.merges_runs = random() % 4 != 0;
    auto combined = stage.round(logs, lows, epoch + 1);
    ASSERT_TRUE(combined) << combined.error().message;
    ASSERT_NO_FATAL_FAILURE(check_files(stage, victims));
    records += logs.size();
    EXPECT_EQ(combined->records, records);
    std::vector<ModelRecord> found;
    auto totals = stage.walk([&](const WalkedRecord& record) {
      found.push_back(
          {{reinterpret_cast<const char*>(record.payload.data()), record.payload.size()},
           record.vid});
      return Result<void>();
    });
    ASSERT_TRUE(totals) << totals.error().message;
    // Runs of several snapshots may be merged. A walk then no longer alternates between the runs of
    // the two nodes, so its records are not in the order of their VIDs.
    std::ranges::sort(found, {}, [](const ModelRecord& record) { return record.vid.word(); });
    ASSERT_TRUE(found == expected) << found.size() << " records, expected " << expected.size();
  }
}

}  // namespace atolldb::test
