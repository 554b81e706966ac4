// Shares of a replay: each record has one, and neighbours mostly have the same (R100).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/replay.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kLastEpoch = 1000;

/// A record with a key, and without a payload.
struct KeyRecord {
  KeyRecord(LogType type, const std::string& key, uint64_t epoch) {
    CHECK(key.size() <= bytes.size() - sizeof(LogRecord));
    record().type = type;
    record().storage_id = 1;
    record().key_bytes = static_cast<uint16_t>(key.size());
    record().vid = Vid::make(epoch, 1).word();
    std::ranges::copy(std::as_bytes(std::span(key)), bytes.begin() + sizeof(LogRecord));
  }
  LogRecord& record() { return *reinterpret_cast<LogRecord*>(bytes.data()); }

  alignas(LogRecord) std::array<std::byte, 64> bytes{};
};

/// Returns the only share of `count` that has the record, or `count` if there is not exactly one.
uint32_t share_of(KeyRecord record, const StorageControl& storage, uint32_t count) {
  uint32_t found = count;
  uint32_t shares = 0;
  for (uint32_t number = 0; number < count; ++number) {
    if (!ReplayShare{number, count, kLastEpoch}.has(record.record(), storage)) continue;
    found = number;
    ++shares;
  }
  return shares == 1 ? found : count;
}

TEST(ReplayShares, EachRecordHasOneWhateverItsTypeAndVersion) {
  std::mt19937_64 random(seed());
  for (const StorageType type :
       {StorageType::mastertree, StorageType::hash, StorageType::array, StorageType::sequential}) {
    StorageControl storage{};
    storage.id = 1;
    storage.type = type;
    storage.record_count = 1 + random() % 100;
    for (int round = 0; round < 2000; ++round) {
      std::string key(type == StorageType::array ? 8 : random() % 20, '\0');
      for (char& byte : key) byte = static_cast<char>(random());
      if (type == StorageType::array) {
        const uint64_t index = random() % storage.record_count;
        std::memcpy(key.data(), &index, sizeof index);
      }
      if (type == StorageType::sequential) key.clear();
      const auto log_type = key.empty() ? LogType::append : LogType::update;
      const auto count = static_cast<uint32_t>(1 + random() % 9);
      const uint64_t epoch = 1 + random() % kLastEpoch;
      const uint32_t share = share_of(KeyRecord(log_type, key, epoch), storage, count);
      EXPECT_LT(share, count);
      if (type == StorageType::sequential) continue;
      const uint32_t other = share_of(KeyRecord(LogType::erase, key, kLastEpoch), storage, count);
      EXPECT_EQ(share, other) << "versions of a record have one share";
    }
  }
}

TEST(ReplayShares, NeighboursHaveTheSame) {
  StorageControl storage{};
  storage.id = 1;
  storage.type = StorageType::mastertree;
  std::vector<int> uses(3);
  for (int group = 0; group < 300; ++group) {
    const std::string prefix = "user" + std::to_string(1000 + group);
    const uint32_t share = share_of(KeyRecord(LogType::insert, prefix + "00", 5), storage, 3);
    ASSERT_LT(share, 3u);
    ++uses[share];
    EXPECT_EQ(share_of(KeyRecord(LogType::insert, prefix + "73", 9), storage, 3), share);
  }
  for (const int count : uses) EXPECT_GT(count, 50) << "the groups are spread over all shares";
}

TEST(ReplayShares, OfArraysHashesAndHeapsAreRanges) {
  StorageControl storage{};
  storage.id = 1;
  storage.record_count = 1000;
  const auto ascend = [&](StorageType type, const auto& record_at) {
    storage.type = type;
    uint32_t before = 0;
    for (uint64_t i = 0; i < 1000; ++i) {
      const uint32_t share = share_of(record_at(i), storage, 4);
      EXPECT_GE(share, before) << i;
      before = share;
    }
    EXPECT_EQ(before, 3u) << "the last share is used";
  };
  ascend(StorageType::array, [](uint64_t i) {
    return KeyRecord(LogType::update, std::string(reinterpret_cast<const char*>(&i), 8), 5);
  });
  ascend(StorageType::hash, [](uint64_t i) {
    const uint64_t slice = __builtin_bswap64(i * (UINT64_MAX / 999));
    return KeyRecord(LogType::insert, std::string(reinterpret_cast<const char*>(&slice), 8), 5);
  });
  ascend(StorageType::sequential, [](uint64_t i) { return KeyRecord(LogType::append, "", i + 1); });
}

TEST(ReplayFiles, HaveOneProcessEachAndAreBalanced) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 2000; ++round) {
    const auto count = static_cast<uint32_t>(1 + random() % 6);
    std::vector<SizedFile> files(random() % 30);
    uint64_t total = 0;
    uint64_t largest = 0;
    for (SizedFile& file : files) {
      file = {static_cast<uint32_t>(random() % 8), random() % 100};
      total += file.bytes;
      largest = std::max(largest, file.bytes);
    }
    const auto owners = divide_files(files, count);
    ASSERT_EQ(owners.size(), files.size());
    EXPECT_EQ(owners, divide_files(files, count));
    std::vector<uint64_t> loads(count);
    for (size_t i = 0; i < files.size(); ++i) {
      ASSERT_LT(owners[i], count);
      loads[owners[i]] += files[i].bytes;
    }
    for (const uint64_t load : loads) EXPECT_LE(load, total / count + 1 + largest);
  }
}

TEST(ReplayFiles, StayWithTheNodeThatWroteThem) {
  EXPECT_EQ(divide_files(std::vector<SizedFile>{{1, 5}, {0, 5}, {1, 3}, {0, 3}}, 2),
            (std::vector<uint32_t>{1, 0, 1, 0}));
  // Node 0 wrote most bytes, and node 2 takes part no more.
  EXPECT_EQ(divide_files(std::vector<SizedFile>{{0, 8}, {0, 4}, {1, 4}, {2, 4}}, 2),
            (std::vector<uint32_t>{0, 1, 1, 0}));
  EXPECT_EQ(divide_files(std::vector<SizedFile>{{0, 4}, {1, 4}}, 1), (std::vector<uint32_t>{0, 0}));
}

}  // namespace
}  // namespace atolldb::test
