// Storages that are folded from a checkpoint and the log have the content that the transactions
// left. The order of the records does not matter.
#include "ops/export/folded_storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "shared/memory/state_names.h"
#include "tests/engine/checkpoint/checkpoint_stage.h"
#include "tests/engine/checkpoint/read_checkpoint.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// A copy of a record.
class CopiedRecord {
 public:
  explicit CopiedRecord(const LogRecord& record) : words_(record.length / sizeof(uint64_t)) {
    std::memcpy(words_.data(), &record, words_.size() * sizeof(uint64_t));
  }
  const LogRecord& get() const { return *reinterpret_cast<const LogRecord*>(words_.data()); }

 private:
  std::vector<uint64_t> words_;
};

/// Returns all records that a recovery would replay, by storage.
std::map<uint32_t, std::vector<CopiedRecord>> records_of(const CrashImage& image) {
  std::map<uint32_t, std::vector<CopiedRecord>> records;
  const auto add = [&](const LogRecord& record) {
    if (record.type != LogType::filler) records[record.storage_id].emplace_back(record);
  };
  const auto checkpoint = newest_checkpoint(*image.checkpoints, "/data");
  EXPECT_TRUE(checkpoint && checkpoint->has_value());
  EXPECT_EQ(read_checkpoint_files(*image.checkpoints, **checkpoint, add), "");
  const auto files = log_files_to_replay(*image.logs, image.streams(), (*checkpoint)->replay_epoch);
  EXPECT_TRUE(files.has_value());
  uint64_t bytes = 0;
  uint64_t outside = 0;
  const auto visit = [&](const LogBlock& block) -> Result<void> {
    for_each_record(block, add);
    return {};
  };
  for (const LogReplayFile& file : *files) {
    EXPECT_TRUE(read_log_file(*image.logs, file, visit, bytes, outside).has_value());
  }
  return records;
}

ExportedStorage described(const StorageControl& storage) {
  return {storage.id, storage.type, storage.payload_bytes, storage.record_count};
}

/// Returns the rows as the content of a map, by keys as RandomWork names them.
std::map<std::string, std::string> rows_in(const FoldedStorage& folded, StorageType type) {
  std::map<std::string, std::string> rows;
  const FoldedStorage::Row* before = nullptr;
  for (const FoldedStorage::Row& row : folded.rows()) {
    std::string key(folded.walked_key(row));
    if (type == StorageType::array) std::ranges::reverse(key);
    EXPECT_TRUE(rows.emplace(key, row.payload).second);
    if (before != nullptr) {
      EXPECT_LE(before->number, row.number);
      EXPECT_LT(before->key, row.key);
    }
    before = &row;
  }
  return rows;
}

TEST(FoldedStorages, HaveTheContentOfTheCut) {
  for (uint64_t round = 0; round < rounds(4, 40); ++round) {
    const uint64_t seed_value = seed() + round;
    SCOPED_TRACE("seed " + std::to_string(seed_value));
    std::mt19937_64 random(seed_value);
    CheckpointStage stage(1, 2);
    std::vector<RandomWork> works;
    for (uint32_t i = 0; i < 2; ++i) works.emplace_back(seed_value, i, 2);
    for (uint64_t step = 0; step < 1500; ++step) {
      const auto chosen = static_cast<uint32_t>(random() % 2);
      ASSERT_EQ(works[chosen].step(stage.worker(chosen), stage.storages), "");
      if (random() % 40 == 0) stage.next_epoch();
      if (step != 600) continue;
      ASSERT_EQ(stage.take_checkpoint({.files = 2}), "");
    }
    const CrashImage image = stage.crash();
    const Content expected = content_at(works, image.cut_epoch);
    auto records = records_of(image);
    for (const StorageControl* storage : stage.storages.all()) {
      FoldedStorage folded(described(*storage));
      std::ranges::shuffle(records[storage->id], random);
      for (const CopiedRecord& record : records[storage->id]) {
        ASSERT_EQ(folded.add(record.get()), nullptr);
      }
      ASSERT_EQ(folded.finish(), nullptr);
      if (storage->type == StorageType::sequential) {
        std::multiset<std::string> heap;
        uint64_t version = 0;
        for (const FoldedStorage::Row& row : folded.rows()) {
          heap.insert(row.payload);
          EXPECT_LE(version, row.vid.version());
          version = row.vid.version();
        }
        EXPECT_TRUE(heap == expected.heap);
      } else {
        EXPECT_TRUE(rows_in(folded, storage->type) == expected.map(storage->type))
            << to_string(storage->type);
      }
    }
  }
}

/// Makes a record of storage 1 with a payload of zeros.
CopiedRecord record(LogType type, const std::string& key, uint16_t offset, uint16_t bytes,
                    uint64_t epoch = 5) {
  std::vector<uint64_t> words(LogRecord::bytes(static_cast<uint32_t>(key.size()), bytes) / 8);
  auto* log = reinterpret_cast<LogRecord*>(words.data());
  log->type = type;
  log->key_bytes = static_cast<uint16_t>(key.size());
  log->length = static_cast<uint32_t>(words.size() * 8);
  log->storage_id = 1;
  log->payload_offset = offset;
  log->payload_bytes = bytes;
  log->vid = Vid::make(epoch, 1).word();
  if (!key.empty()) std::memcpy(log->key(), key.data(), key.size());
  return CopiedRecord(*log);
}

TEST(FoldedStorages, KnowHowMuchMemoryTheirRecordsTake) {
  FoldedStorage tree({1, StorageType::mastertree, 0, 0});
  EXPECT_EQ(tree.memory_bytes(), 0u);
  const auto add = [&](const CopiedRecord& each) {
    EXPECT_EQ(tree.add(each.get()), nullptr);
    return tree.memory_bytes();
  };
  const uint64_t one = add(record(LogType::insert, "one", 0, 1'000));
  EXPECT_GE(one, 1'000u);
  EXPECT_EQ(add(record(LogType::insert, "one", 0, 1'000, 4)), one) << "an older version";
  EXPECT_EQ(add(record(LogType::insert, "two", 0, 1'000)), 2 * one);
  EXPECT_GT(add(record(LogType::update, "two", 8, 500, 6)), 2 * one + 500);
  const uint64_t two = add(record(LogType::insert, "two", 0, 1'000, 7));
  EXPECT_LT(two, 2 * one + 500) << "it has all bytes of the update";
  const uint64_t erased = add(record(LogType::erase, "one", 0, 0, 8));
  EXPECT_LE(erased, two - 1'000);
  EXPECT_GT(erased, one) << "the key stays until the end";
  FoldedStorage array({1, StorageType::array, 1'000, 8});
  const std::string index("\x07\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(array.add(record(LogType::update, index, 8, 8).get()), nullptr);
  EXPECT_GE(array.memory_bytes(), 1'000u) << "the record gets its other bytes at the end";
  FoldedStorage heap({1, StorageType::sequential, 0, 0});
  EXPECT_EQ(heap.add(record(LogType::append, "", 0, 1'000).get()), nullptr);
  EXPECT_GE(heap.memory_bytes(), 1'000u);
}

TEST(FoldedStorages, NameRecordsThatDoNotFit) {
  const std::string index("\x07\0\0\0\0\0\0\0", 8);
  FoldedStorage array({1, StorageType::array, 16, 8});
  EXPECT_STREQ(array.add(record(LogType::update, "short", 0, 16).get()),
               "has no number as its key");
  EXPECT_STREQ(array.add(record(LogType::update, index, 9, 8).get()), "does not fit its array");
  EXPECT_STREQ(array.add(record(LogType::insert, index, 0, 8).get()), "does not fit its array");
  EXPECT_EQ(array.add(record(LogType::update, index, 8, 8).get()), nullptr);
  EXPECT_EQ(array.finish(), nullptr);
  ASSERT_EQ(array.rows().size(), 1u);
  EXPECT_EQ(array.rows()[0].payload.size(), 16u);
  FoldedStorage tree({1, StorageType::mastertree, 0, 0});
  EXPECT_NE(tree.add(record(LogType::add, "k", 0, 8).get()), nullptr);
  EXPECT_EQ(tree.add(record(LogType::update, "k", 0, 8).get()), nullptr);
  EXPECT_STREQ(tree.finish(), "has an update without a record");
  FoldedStorage heap({1, StorageType::sequential, 0, 0});
  EXPECT_STREQ(heap.add(record(LogType::insert, "k", 0, 8).get()), "is no append");
}

}  // namespace
}  // namespace atolldb::test
