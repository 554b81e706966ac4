// Updates of parts of records that one thread of a replay will give to other processes (R100).
#include "engine/checkpoint/given_updates.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "engine/checkpoint/pending_updates.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

Bytes given_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string given_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Names a record: its storage, and its key.
using UpdateName = std::pair<uint32_t, std::string>;

/// Applies all updates to the records in the order of versions.
class UpdateModel {
 public:
  void add(uint32_t storage, const std::string& key, uint64_t version, uint32_t offset,
           Bytes bytes) {
    updates_[{storage, key}].add(version, offset, bytes);
  }
  std::map<UpdateName, std::string> contents() {
    std::map<UpdateName, std::string> contents;
    for (auto& [name, updates] : updates_) {
      std::string payload(100, '.');
      bool fits = true;
      updates.apply(0, std::as_writable_bytes(std::span(payload)), fits);
      EXPECT_TRUE(fits);
      contents[name] = payload;
    }
    return contents;
  }

 private:
  std::map<UpdateName, UpdateList> updates_;
};

TEST(GivenUpdates, LeaveTheSameContentAsAllUpdates) {
  std::mt19937_64 random(seed());
  for (uint64_t round = 0; round < rounds(20, 200); ++round) {
    GivenUpdates given;
    UpdateModel all;
    UpdateModel taken;
    uint64_t dropped = 0;
    const auto take_all = [&] {
      const auto done = given.take_all([&](const LogRecord& record) -> Result<void> {
        EXPECT_EQ(record.type, LogType::update);
        EXPECT_EQ(record.length, LogRecord::bytes(record.key_bytes, record.payload_bytes));
        taken.add(record.storage_id, given_text(record.key_span()), record.vid,
                  record.payload_offset, {record.payload(), record.payload_bytes});
        return {};
      });
      EXPECT_TRUE(done);
      EXPECT_TRUE(given.is_empty());
      EXPECT_EQ(given.memory_bytes(), 0u);
    };
    for (int i = 0; i < 300; ++i) {
      const auto storage = static_cast<uint32_t>(1 + random() % 2);
      const std::string key(random() % 3 * 30, 'k');
      // Each version is of one update only, as each commit has another VID.
      const Vid vid = Vid::make(1 + random() % 50, static_cast<uint32_t>(1 + i));
      const auto offset = static_cast<uint32_t>(random() % 5 * 10);
      const std::string bytes(1 + random() % 40, static_cast<char>('a' + random() % 26));
      all.add(storage, key, vid.version(), offset, given_bytes(bytes));
      const auto size = static_cast<uint32_t>(bytes.size());
      const bool is_covered = given.covers(storage, given_bytes(key), vid, offset, size);
      const Replayed result = given.add(storage, given_bytes(key), vid, offset, given_bytes(bytes));
      EXPECT_EQ(is_covered, result == Replayed::older);
      dropped += is_covered ? 1 : 0;
      EXPECT_TRUE(given.covers(storage, given_bytes(key), vid, offset, size));
      if (random() % 100 == 0) take_all();
    }
    take_all();
    EXPECT_GT(dropped, 0u);
    EXPECT_EQ(taken.contents(), all.contents());
  }
}

TEST(GivenUpdates, OfOneRangeAreOneRecord) {
  GivenUpdates given;
  const std::array<std::byte, 8> bytes{};
  const std::string key = "key";
  for (uint32_t i = 1; i <= 10'000; ++i) {
    given.add(1, given_bytes(key), Vid::make(1 + i / 100, i), 4, bytes);
  }
  EXPECT_FALSE(given.is_full());
  int records = 0;
  ASSERT_TRUE(given.take_all([&](const LogRecord& record) -> Result<void> {
    EXPECT_EQ(record.vid, Vid::make(101, 10'000).version());
    ++records;
    return {};
  }));
  EXPECT_EQ(records, 1);
}

TEST(GivenUpdates, ComparesWholeKeys) {
  GivenUpdates given;
  const std::string key(kMaxTreeKeyBytes, 'k');
  const std::string other = key.substr(1) + "x";
  const std::array<std::byte, 8> bytes{};
  given.add(7, given_bytes(key), Vid::make(3, 1), 4, bytes);
  EXPECT_TRUE(given.covers(7, given_bytes(key), Vid::make(3, 1), 4, 8));
  EXPECT_FALSE(given.covers(7, given_bytes(other), Vid::make(3, 1), 4, 8));
  EXPECT_FALSE(given.covers(6, given_bytes(key), Vid::make(3, 1), 4, 8));
  EXPECT_FALSE(given.covers(7, given_bytes(key), Vid::make(3, 2), 4, 8));
  EXPECT_FALSE(given.covers(7, given_bytes(key), Vid::make(3, 1), 3, 8));
}

TEST(GivenUpdates, AreFullAtTheirLimitOfMemory) {
  GivenUpdates given;
  const std::string bytes(1000, 'x');
  uint32_t records = 0;
  while (!given.is_full() && records < 100'000) {
    std::string key(sizeof records, '\0');
    std::memcpy(key.data(), &++records, sizeof records);
    given.add(1, given_bytes(key), Vid::make(3, 1), 0, given_bytes(bytes));
  }
  EXPECT_LT(records, GivenUpdates::kMaxBytes / bytes.size());
  EXPECT_GT(records, GivenUpdates::kMaxBytes / (2 * bytes.size()));
}

}  // namespace
}  // namespace atolldb::test
