// Tests of partition assignment and of key sampling.
#include "engine/gleaner/assign_partitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

#include "engine/format/array_page.h"
#include "engine/format/tree_key.h"
#include "tests/engine/log/log_blocks.h"
#include "tests/engine/log/written_log.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

PlannedStorage storage_of(uint32_t id, StorageType type, uint64_t record_count = 0) {
  PlannedStorage storage;
  storage.id = id;
  storage.type = type;
  storage.payload_bytes = 8;
  storage.record_count = record_count;
  return storage;
}

std::vector<ReducerPlace> reducers_of(uint16_t nodes, uint16_t each) {
  std::vector<ReducerPlace> reducers;
  for (uint16_t node = 0; node < nodes; ++node) {
    for (uint16_t reducer = 0; reducer < each; ++reducer) reducers.push_back({node, reducer});
  }
  return reducers;
}

uint64_t key_of(const std::string& low) { return slice_of(std::as_bytes(std::span(low))); }

size_t partition_of(const PlannedStorage& storage, uint64_t key) {
  size_t partition = 0;
  while (partition + 1 < storage.partitions.size() &&
         key_of(storage.partitions[partition + 1].low) <= key) {
    ++partition;
  }
  return partition;
}

/// Returns a defect in the partitions of a storage that is not sequential, or an empty text.
std::string defect_of(const PlannedStorage& storage, const std::vector<ReducerPlace>& reducers) {
  if (storage.partitions.empty()) return "no partition";
  if (!storage.partitions.front().low.empty()) return "the first one does not begin at the start";
  std::set<std::pair<uint16_t, uint16_t>> owners;
  for (size_t i = 0; i < storage.partitions.size(); ++i) {
    const PlannedPartition& partition = storage.partitions[i];
    if (i != 0 && partition.low.size() != 8) return "a boundary has not 8 bytes";
    if (i != 0 && partition.low <= storage.partitions[i - 1].low) return "they do not ascend";
    if (std::ranges::find(reducers, partition.owner) == reducers.end()) return "unknown owner";
    if (!owners.insert({partition.owner.node, partition.owner.reducer}).second) {
      return "a reducer has two of them";
    }
  }
  return "";
}

TEST(AssignPartitions, GivesEachReducerItsShareOfUniformKeysWhicheverNodeLoggedThem) {
  std::mt19937_64 random(seed());
  const auto reducers = reducers_of(3, 2);
  std::vector<PlannedStorage> storages = {storage_of(4, StorageType::mastertree)};
  std::vector<SampledKey> sample;
  for (int i = 0; i < 6000; ++i) {
    sample.push_back({4, static_cast<uint16_t>(random() % 3), random()});
  }
  assign_partitions(storages, {sample}, reducers);
  ASSERT_EQ(defect_of(storages[0], reducers), "");
  ASSERT_EQ(storages[0].partitions.size(), 6u);
  std::map<size_t, int> records;
  for (const SampledKey& key : sample) ++records[partition_of(storages[0], key.key)];
  for (const auto& [partition, count] : records) EXPECT_NEAR(count, 1000, 2) << partition;
  // The order of the sample does not matter.
  std::vector<PlannedStorage> again = {storage_of(4, StorageType::mastertree)};
  std::ranges::shuffle(sample, random);
  assign_partitions(again, {sample}, reducers);
  EXPECT_EQ(again, storages);
}

TEST(AssignPartitions, GivesARangeToTheNodeThatLoggedItWhereNodesHaveRangesOfTheirOwn) {
  std::mt19937_64 random(seed());
  const auto reducers = reducers_of(4, 2);
  std::vector<PlannedStorage> storages = {storage_of(4, StorageType::mastertree)};
  std::vector<SampledKey> sample;
  constexpr uint64_t kRange = uint64_t{1} << 60;
  for (int i = 0; i < 8000; ++i) {
    const auto node = static_cast<uint16_t>(i % 4);
    sample.push_back({4, node, (3 - node) * kRange + random() % kRange});
  }
  assign_partitions(storages, {sample}, reducers);
  ASSERT_EQ(defect_of(storages[0], reducers), "");
  ASSERT_EQ(storages[0].partitions.size(), 8u);
  uint64_t at_home = 0;
  for (const SampledKey& key : sample) {
    const PlannedPartition& partition = storages[0].partitions[partition_of(storages[0], key.key)];
    at_home += partition.owner.node == key.node ? 1 : 0;
  }
  EXPECT_EQ(at_home, sample.size());
}

TEST(AssignPartitions, GivesARangeThatOneNodeWritesSeldomToTheNodeThatReadsItOften) {
  const auto reducers = reducers_of(2, 2);
  std::mt19937_64 random(seed());
  // Node 0 writes all keys. Node 1 reads the lower half of them.
  constexpr uint64_t kHalf = uint64_t{1} << 40;
  SampledLog log;
  for (int i = 0; i < 40'000; ++i) log.keys.push_back({4, 0, random() % (2 * kHalf)});
  SampledReads reads{1, 100'000, {}};
  for (int i = 0; i < 1000; ++i) reads.keys.push_back({4, 1, random() % kHalf});
  const auto owners_of_lower_half = [&](std::span<const SampledReads> counted) {
    std::vector<PlannedStorage> storages = {storage_of(4, StorageType::mastertree)};
    assign_partitions(storages, log, reducers, counted);
    EXPECT_EQ(defect_of(storages[0], reducers), "");
    uint64_t at_reader = 0;
    for (const SampledKey& read : reads.keys) {
      const auto& partition = storages[0].partitions[partition_of(storages[0], read.key)];
      at_reader += partition.owner.node == 1 ? 1 : 0;
    }
    return at_reader;
  };
  // Half of the partitions are on each node either way. Only reads tell which half.
  const uint64_t with_reads = owners_of_lower_half(std::array{reads});
  const uint64_t without = owners_of_lower_half({});
  std::printf("reads of pages on the reader's node: %lu of 1000, without counts of reads %lu\n",
              with_reads, without);
  EXPECT_GE(with_reads, 950U);
  EXPECT_LE(without, 50U);
}

TEST(AssignPartitions, CountsAReadLikeALogRecord) {
  const auto reducers = reducers_of(2, 1);
  const auto owner_with = [&](uint64_t count_of_reads, uint64_t stride) {
    std::vector<PlannedStorage> storages = {storage_of(4, StorageType::mastertree)};
    const SampledLog log{std::vector<SampledKey>(10, {4, 0, 5}), stride};
    const SampledReads reads{1, count_of_reads, {{4, 1, 5}}};
    assign_partitions(storages, log, reducers, std::array{reads});
    return storages[0].partitions[0].owner.node;
  };
  EXPECT_EQ(owner_with(9, 1), 0);
  EXPECT_EQ(owner_with(11, 1), 1);
  EXPECT_EQ(owner_with(99, 10), 0) << "each sampled record stands for ten";
  EXPECT_EQ(owner_with(110, 10), 1);
}

TEST(AssignPartitions, IgnoresReadsOfOtherStorages) {
  const auto reducers = reducers_of(2, 1);
  std::vector<PlannedStorage> storages = {storage_of(4, StorageType::mastertree)};
  const SampledLog log{std::vector<SampledKey>(10, {4, 0, 5}), 1};
  const SampledReads reads{1, 1000, {{5, 1, 5}, {3, 1, 5}}};
  assign_partitions(storages, log, reducers, std::array{reads, SampledReads{0, 7, {}}});
  EXPECT_EQ(storages[0].partitions[0].owner.node, 0);
}

TEST(AssignPartitions, FollowsAHotSpotThatMoves) {
  std::mt19937_64 random(seed());
  const auto reducers = reducers_of(2, 2);
  constexpr uint64_t kWidth = 1'000'000;
  std::vector<PlannedStorage> storages = {storage_of(4, StorageType::mastertree)};
  for (uint64_t begin : {uint64_t{0}, 10 * kWidth, 3 * kWidth, uint64_t{1} << 62}) {
    // Nine of ten records are in the hot spot, whose halves belong to one node each.
    std::vector<SampledKey> sample;
    for (int i = 0; i < 4000; ++i) {
      const uint64_t hot = begin + random() % kWidth;
      const auto node = static_cast<uint16_t>(hot - begin < kWidth / 2 ? 1 : 0);
      sample.push_back({4, node, i % 10 == 0 ? random() : hot});
    }
    assign_partitions(storages, {sample}, reducers);
    ASSERT_EQ(defect_of(storages[0], reducers), "");
    ASSERT_EQ(storages[0].partitions.size(), 4u);
    std::map<size_t, int> records;
    int at_home = 0;
    for (const SampledKey& key : sample) {
      const size_t partition = partition_of(storages[0], key.key);
      ++records[partition];
      at_home += storages[0].partitions[partition].owner.node == key.node ? 1 : 0;
    }
    for (const auto& [partition, count] : records) EXPECT_NEAR(count, 1000, 2) << partition;
    EXPECT_GE(at_home, 3000) << begin;
  }
}

TEST(AssignPartitions, CutsWhereTheKeysAreHoweverSkewedTheyAre) {
  std::mt19937_64 random(seed());
  const auto reducers = reducers_of(2, 2);
  for (uint64_t round = 0; round < rounds(50, 1000); ++round) {
    std::vector<PlannedStorage> storages = {storage_of(1, StorageType::mastertree),
                                            storage_of(2, StorageType::mastertree)};
    std::vector<SampledKey> sample;
    const uint64_t shift = random() % 64;
    for (uint64_t i = random() % 3000; i > 0; --i) {
      const uint64_t hot = random() % 2 == 0 ? 77 : random() >> shift;
      sample.push_back(
          {1 + static_cast<uint32_t>(random() % 2), static_cast<uint16_t>(random() % 2), hot});
    }
    assign_partitions(storages, {sample}, reducers);
    for (const PlannedStorage& storage : storages) {
      ASSERT_EQ(defect_of(storage, reducers), "");
      std::set<size_t> with_records;
      for (const SampledKey& key : sample) {
        if (key.storage_id == storage.id) with_records.insert(partition_of(storage, key.key));
      }
      if (storage.partitions.size() > 1) {
        EXPECT_EQ(with_records.size(), storage.partitions.size()) << "none is for nothing";
      }
    }
  }
}

TEST(AssignPartitions, MakesOnePartitionOfASingleKeyOfFewRecordsAndOfNone) {
  const auto reducers = reducers_of(3, 2);
  std::vector<PlannedStorage> storages = {
      storage_of(1, StorageType::mastertree), storage_of(2, StorageType::mastertree),
      storage_of(3, StorageType::mastertree), storage_of(4, StorageType::sequential),
      storage_of(5, StorageType::array, 1000000)};
  std::vector<SampledKey> sample;
  for (int i = 0; i < 5000; ++i)
    sample.push_back({1, static_cast<uint16_t>(i % 5 == 0 ? 0 : 1), 9});
  for (uint64_t i = 0; i < kSampledPerPartition * 2 - 1; ++i) sample.push_back({2, 2, i});
  assign_partitions(storages, {sample}, reducers);
  for (const size_t i : {0u, 1u, 2u, 4u}) {
    EXPECT_EQ(defect_of(storages[i], reducers), "");
    EXPECT_EQ(storages[i].partitions.size(), 1u);
  }
  EXPECT_EQ(storages[0].partitions[0].owner.node, 1u);
  EXPECT_EQ(storages[1].partitions[0].owner.node, 2u);
  EXPECT_TRUE(storages[3].partitions.empty());
}

TEST(AssignPartitions, HasNoMorePartitionsThanKeysAllow) {
  const auto reducers = reducers_of(50, 4);
  std::vector<PlannedStorage> storages = {storage_of(1, StorageType::mastertree)};
  std::vector<SampledKey> sample;
  for (uint64_t i = 0; i < 900; ++i) sample.push_back({1, static_cast<uint16_t>(i % 50), i % 3});
  assign_partitions(storages, {sample}, reducers);
  EXPECT_EQ(defect_of(storages[0], reducers), "");
  EXPECT_EQ(storages[0].partitions.size(), 3u);
  // Node 49 has loggers and no reducer, so the only reducer owns the partition.
  storages = {storage_of(1, StorageType::mastertree)};
  assign_partitions(storages, {std::vector<SampledKey>(100, {1, 49, 5})}, reducers_of(1, 1));
  EXPECT_EQ(storages[0].partitions.at(0).owner, (ReducerPlace{0, 0}));
}

TEST(AssignPartitions, SpreadsSmallStoragesOfANodeOverItsReducers) {
  const auto reducers = reducers_of(2, 3);
  std::vector<PlannedStorage> storages;
  std::vector<SampledKey> sample;
  for (uint32_t id = 1; id <= 9; ++id) {
    storages.push_back(storage_of(id, StorageType::mastertree));
    for (int i = 0; i < 10; ++i) sample.push_back({id, 1, id});
  }
  assign_partitions(storages, {sample}, reducers);
  std::map<uint16_t, int> owned;
  for (const PlannedStorage& storage : storages) {
    EXPECT_EQ(storage.partitions.at(0).owner.node, 1u);
    ++owned[storage.partitions[0].owner.reducer];
  }
  EXPECT_EQ(owned, (std::map<uint16_t, int>{{0, 3}, {1, 3}, {2, 3}}));
}

TEST(AssignPartitions, CutsArraysBetweenChildrenOfTheRoot) {
  std::mt19937_64 random(seed());
  const auto reducers = reducers_of(2, 4);
  for (const uint64_t records : {10ull, 1000ull, 1000000ull, 100000000ull}) {
    std::vector<PlannedStorage> storages = {storage_of(6, StorageType::array, records)};
    std::vector<SampledKey> sample;
    for (int i = 0; i < 4000; ++i) sample.push_back({6, 0, random() % records});
    assign_partitions(storages, {sample}, reducers);
    ASSERT_EQ(defect_of(storages[0], reducers), "");
    const uint64_t grain =
        ArrayShape(storages[0].record_count, storages[0].payload_bytes).records_below_root_child();
    for (const PlannedPartition& partition : storages[0].partitions) {
      if (!partition.low.empty()) {
        EXPECT_EQ(key_of(partition.low) % grain, 0u);
      }
    }
    // Arrays whose root has more than two children are divided.
    if (storages[0].partitions.size() == 1) {
      EXPECT_LE(records, grain * 2);
    }
  }
}

TEST(SampleKeys, FindsKeysOfTheEpochsToBeGleanedAndIsNotStoppedByDamage) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}, 64), "");
  for (size_t writer = 0; writer < 2; ++writer) {
    for (uint64_t epoch = 1; epoch <= 6; ++epoch) {
      BlockBuffer buffer(1);
      LogBlock& block = buffer.all()[0];
      begin_block(block, epoch, 0);
      const uint64_t index = epoch * 10;
      const uint64_t slice = std::byteswap(index);
      add_record(block, LogType::update, 1, Vid::make(epoch, 1).word(),
                 std::as_bytes(std::span(&index, 1)), {});
      add_record(block, LogType::insert, 2, Vid::make(epoch, 2).word(),
                 std::as_bytes(std::span(&slice, 1)), {});
      add_record(block, LogType::insert, 3, Vid::make(epoch, 3).word(),
                 std::as_bytes(std::span(&slice, 1)), {});
      ASSERT_TRUE(data.writers[writer].append(std::array{buffer.all()}, 0));
      ASSERT_TRUE(data.writers[writer].close_epoch(epoch, 0));
    }
  }
  const auto start = examine(data.files, "/data");
  ASSERT_TRUE(start);
  std::vector<PlannedStream> streams = start->streams_to_read;
  for (PlannedStream& stream : streams) stream.last_epoch = 5;
  const std::vector<PlannedStorage> storages = {storage_of(1, StorageType::array, 100),
                                                storage_of(2, StorageType::mastertree)};
  const auto keys = [&](uint64_t base_epoch, uint64_t blocks) {
    auto sample = sample_keys(data.files, storages, streams, base_epoch, blocks);
    EXPECT_TRUE(sample) << sample.error().message;
    std::ranges::sort(sample->keys);
    return sample->keys;
  };
  EXPECT_EQ(keys(0, 1000).size(), 20u);
  EXPECT_EQ(keys(3, 1000), (std::vector<SampledKey>{{1, 0, 40},
                                                    {1, 0, 50},
                                                    {1, 1, 40},
                                                    {1, 1, 50},
                                                    {2, 0, 40},
                                                    {2, 0, 50},
                                                    {2, 1, 40},
                                                    {2, 1, 50}}));
  const size_t some = keys(0, 40).size();
  EXPECT_GT(some, 0u);
  EXPECT_LT(some, 20u);
  data.files.bytes("/data/node0/log_1_0_000000.atlog")[kLogBlockBytes + 70] ^= std::byte{1};
  EXPECT_EQ(keys(0, 1000).size(), 18u);
}

}  // namespace
}  // namespace atolldb::test
