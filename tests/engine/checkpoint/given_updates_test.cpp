// Updates of parts of records that one thread of a replay will give to other processes (R100).
#include "engine/checkpoint/given_updates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

Bytes given_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string given_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Names a record: its storage, and its key.
using UpdateName = std::pair<uint32_t, std::string>;

/// What any updates leave of a record: the newest version of each byte, and its value.
class UpdateModel {
 public:
  void add(const UpdateName& name, uint64_t version, uint32_t offset, const std::string& bytes) {
    for (const char byte : bytes) {
      auto& newest = bytes_[{name, offset++}];
      if (newest.first <= version) newest = {version, byte};
    }
  }
  bool operator==(const UpdateModel&) const = default;

 private:
  std::map<std::pair<UpdateName, uint32_t>, std::pair<uint64_t, char>> bytes_;
};

/// All updates that a table has got since it was last cleared.
class UpdateHistory {
 public:
  void add(const UpdateName& name, uint64_t version, uint32_t offset, const std::string& bytes) {
    updates_.push_back({name, version, offset, offset + bytes.size()});
  }
  void clear() { updates_.clear(); }
  /// Returns whether one of them is at least as new, and has all bytes [from, to) of the record.
  bool covers(const UpdateName& name, uint64_t version, uint64_t from, uint64_t to) const {
    return std::ranges::any_of(updates_, [&](const Update& update) {
      return update.name == name && update.version >= version && update.from <= from &&
             update.to >= to;
    });
  }

 private:
  struct Update {
    UpdateName name;
    uint64_t version;
    uint64_t from;
    uint64_t to;
  };
  std::vector<Update> updates_;
};

/// Adds random updates to a table, which gives them now and then.
class RandomUpdates {
 public:
  explicit RandomUpdates(std::mt19937_64& random) : random_(random) {}

  void add_some(uint32_t count) {
    while (count-- != 0) {
      add();
      if (random_() % 100 == 0) give_all();
    }
    give_all();
  }
  /// Returns the number of updates that the table has not kept.
  uint64_t dropped() const { return dropped_; }
  const UpdateModel& all() const { return all_; }
  const UpdateModel& given() const { return given_; }

 private:
  void add() {
    const UpdateName name(static_cast<uint32_t>(1 + random_() % 2),
                          std::string(random_() % 3 * 30, 'k'));
    // Each version is of one update only, as each commit has another VID.
    const Vid vid = Vid::make(1 + random_() % 50, ++count_);
    const auto offset = static_cast<uint32_t>(random_() % 5 * 10);
    const std::string bytes(1 + random_() % 40, static_cast<char>('a' + random_() % 26));
    const auto size = static_cast<uint32_t>(bytes.size());
    const Bytes key = given_bytes(name.second);
    const bool is_covered = history_.covers(name, vid.version(), offset, offset + size);
    EXPECT_EQ(table_.covers(name.first, key, vid, offset, size), is_covered);
    const Replayed result = table_.add(name.first, key, vid, offset, given_bytes(bytes));
    EXPECT_EQ(result == Replayed::older, is_covered);
    EXPECT_TRUE(table_.covers(name.first, key, vid, offset, size));
    dropped_ += is_covered ? 1 : 0;
    all_.add(name, vid.version(), offset, bytes);
    history_.add(name, vid.version(), offset, bytes);
  }
  void give_all() {
    const auto done = table_.take_all([&](const LogRecord& record) -> Result<void> {
      EXPECT_EQ(record.type, LogType::update);
      EXPECT_EQ(record.length, LogRecord::bytes(record.key_bytes, record.payload_bytes));
      given_.add({record.storage_id, given_text(record.key_span())}, record.vid,
                 record.payload_offset, given_text({record.payload(), record.payload_bytes}));
      return {};
    });
    EXPECT_TRUE(done);
    EXPECT_TRUE(table_.is_empty());
    EXPECT_EQ(table_.memory_bytes(), 0u);
    history_.clear();
  }

  std::mt19937_64& random_;
  GivenUpdates table_;
  UpdateModel all_;
  UpdateModel given_;
  UpdateHistory history_;
  uint32_t count_ = 0;
  uint64_t dropped_ = 0;
};

TEST(GivenUpdates, LeaveTheSameBytesAsAllUpdates) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(20, 200); ++round) {
    SCOPED_TRACE("ATOLL_SEED=" + std::to_string(first + round));
    std::mt19937_64 random(first + round);
    RandomUpdates updates(random);
    updates.add_some(300);
    EXPECT_GT(updates.dropped(), 0u);
    EXPECT_TRUE(updates.given() == updates.all());
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
