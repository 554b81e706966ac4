// Walks over ranges: each record is copied once, whatever the division, and the rules decide what
// is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/engine/checkpoint/checkpoint_stage.h"
#include "tests/engine/checkpoint/read_checkpoint.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// Reads a checkpoint. Adds 1 to `copies` for each record, by storage and key.
std::string read_checkpoint(FileSystem& files, const CheckpointMetadata& metadata, Content& content,
                            std::map<std::string, uint32_t>& copies) {
  return read_checkpoint_files(files, metadata, [&](const LogRecord& record) {
    const std::string key = text_of(record.key(), record.key_bytes);
    const std::string payload = text_of(record.payload(), record.payload_bytes);
    if (record.type == LogType::append) {
      content.heap.insert(payload);
      return;
    }
    ++copies[std::to_string(record.storage_id) + "/" + key];
    const StorageType type = metadata.storages[record.storage_id - 1].type;
    if (type != StorageType::hash) {
      content.map(type)[key] = payload;
      return;
    }
    const OriginalKey original(as_key(key));
    const Bytes bytes = original.bytes();
    content.hash[text_of(bytes.data(), bytes.size())] = payload;
  });
}

TEST(RangeWalks, CopyEachRecordOnceWhateverTheDivision) {
  const uint64_t seed_value = seed();
  for (const uint32_t writers : {1u, 2u, 3u, 7u}) {
    CheckpointStage stage(2, 2);
    std::vector<RandomWork> works;
    for (uint32_t i = 0; i < 4; ++i) works.emplace_back(seed_value + writers, i, 4);
    for (uint64_t i = 0; i < rounds(1500, 20000); ++i) {
      ASSERT_EQ(works[i % 4].step(stage.worker(i % 4), stage.storages), "");
      if (i % 100 == 99) stage.next_epoch();
    }
    stage.next_epoch();
    CheckpointOptions options;
    options.writers = writers;
    StagedCheckpoint checkpoint(stage.checkpoints(), stage.worker(0), stage.storages, options);
    for (uint32_t part = 0; part < writers; ++part) {
      ASSERT_EQ(checkpoint.copy(stage.worker(part % 4), part), "");
    }
    Content copied;
    std::map<std::string, uint32_t> copies;
    ASSERT_EQ(read_checkpoint(stage.checkpoints(), checkpoint.finish(), copied, copies), "");
    const Content expected = content_at(works, stage.durable_epoch());
    EXPECT_EQ(copied.sizes(), expected.sizes());
    EXPECT_TRUE(copied == expected) << writers << " writers";
    for (const auto& [key, count] : copies) EXPECT_EQ(count, 1u) << key;
  }
}

TEST(RangeWalks, SkipOnlyWhatTheLogHasAsAWhole) {
  const uint64_t seed_value = seed();
  CheckpointStage stage(1, 1);
  std::vector<RandomWork> works;
  works.emplace_back(seed_value, 0, 1);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(works[0].step(stage.worker(0), stage.storages), "");
  stage.next_epoch();
  const uint64_t before = stage.durable_epoch();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(works[0].step(stage.worker(0), stage.storages), "");
  StagedCheckpoint checkpoint(stage.checkpoints(), stage.worker(0), stage.storages, {});
  ASSERT_EQ(checkpoint.metadata().replay_epoch, before + 1);
  ASSERT_EQ(checkpoint.copy(stage.worker(0), 0), "");
  Content copied;
  std::map<std::string, uint32_t> copies;
  ASSERT_EQ(read_checkpoint(stage.checkpoints(), checkpoint.finish(), copied, copies), "");
  const Content old = content_at(works, before);
  const Content now = content_at(works, UINT64_MAX);
  EXPECT_TRUE(copied.heap == old.heap);
  EXPECT_NE(now.heap.size(), old.heap.size());
  EXPECT_TRUE(copied.tree == now.tree);
  EXPECT_TRUE(copied.array == now.array);
  EXPECT_TRUE(copied.hash == now.hash);
  EXPECT_NE(checkpoint.counters().skipped, 0u);
}

TEST(RangeWalks, EndAtStoragesWithoutRecords) {
  CheckpointStage stage(2, 1);
  CheckpointOptions options;
  options.writers = 2;
  EXPECT_EQ(stage.take_checkpoint(options), "");
  EXPECT_EQ(recover_and_compare(stage.crash(), {}, Content()), "");
}

TEST(RangeWalks, CopyPagesOfTheLongestKeys) {
  // The keys share all slices but the last one, so one page has many keys of 1024 bytes.
  CheckpointStage stage(1, 1, uint64_t{1} << 20);
  const MasterTree tree(*stage.storages.tree);
  Content expected;
  for (uint64_t i = 0; i < 300; ++i) {
    std::string key(MasterTree::kMaxKeyBytes, 'p');
    const auto last = ordered_key(i * 0x0101);
    std::ranges::copy(last, reinterpret_cast<std::byte*>(key.data() + key.size() - last.size()));
    const std::string payload(i % 30, 'v');
    ASSERT_EQ(stage.worker(0).run(
                  [&](Transaction& txn) { return tree.insert(txn, as_key(key), as_key(payload)); }),
              Status::ok);
    expected.tree[key] = payload;
  }
  stage.next_epoch();
  ASSERT_EQ(stage.take_checkpoint({}), "");
  CrashImage image = stage.crash();
  image.logs = std::make_unique<MemoryFileSystem>();
  image.start_epoch = image.cut_epoch + 1;
  EXPECT_EQ(recover_and_compare(image, {}, expected), "");
}

TEST(RangeWalks, HoldBackNoEpochBetweenPages) {
  CheckpointStage stage(1, 2);
  std::vector<RandomWork> works;
  works.emplace_back(seed(), 0, 1);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(works[0].step(stage.worker(0), stage.storages), "");
  stage.next_epoch();
  ASSERT_EQ(stage.take_checkpoint({}), "");
  const auto& slot = stage.worker(0).context->slot();
  EXPECT_EQ(slot.begin_epoch.load(std::memory_order_acquire), kIdleEpoch);
}

TEST(KeyRanges, OfTreesMeetAtTheFences) {
  CheckpointStage stage(1, 1, uint64_t{1} << 20);
  const MasterTree tree(*stage.storages.tree);
  for (uint64_t i = 0; i < rounds(6000, 60000); ++i) {
    const auto key = ordered_key(i);
    ASSERT_EQ(stage.worker(0).run([&](Transaction& txn) { return tree.insert(txn, key, key); }),
              Status::ok);
    if (i % 1000 == 999) stage.next_epoch();
  }
  for (const uint32_t parts : {1u, 2u, 5u}) {
    const auto ranges = divide_storage(*stage.worker(0).context, stage.storages.tree->id, parts);
    ASSERT_EQ(ranges.size(), parts);
    EXPECT_EQ(ranges.front().low, "");
    EXPECT_FALSE(ranges.back().high.has_value());
    for (uint32_t i = 1; i < parts; ++i) {
      EXPECT_EQ(ranges[i].low, ranges[i - 1].high);
      EXPECT_LT(ranges[i - 1].low, ranges[i].low);  // no part is empty
    }
  }
}

TEST(KeyRanges, BeginAtTheSmallestKeyOfASlice) {
  EXPECT_EQ(smallest_key_of(0), "");
  EXPECT_EQ(smallest_key_of(uint64_t{'a'} << 56), "a");
  EXPECT_EQ(smallest_key_of((uint64_t{'a'} << 56) + 1), std::string("a\0\0\0\0\0\0\1", 8));
  EXPECT_EQ(smallest_key_of(UINT64_MAX), std::string(8, '\xff'));
}

}  // namespace
}  // namespace atolldb::test
