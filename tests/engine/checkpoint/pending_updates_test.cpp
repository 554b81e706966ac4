// Updates of parts of records that wait for the end of a replay (R94).
#include "engine/checkpoint/pending_updates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

struct KnownUpdate {
  uint32_t storage = 0;
  std::string key;
  Vid vid;
  uint32_t offset = 0;
  uint32_t bytes = 0;

  bool covers(const KnownUpdate& other) const {
    return storage == other.storage && key == other.key && vid.version() >= other.vid.version() &&
           offset <= other.offset && offset + bytes >= other.offset + other.bytes;
  }
};

TEST(PendingUpdates, CoverWhatANewerUpdateOfTheSameRecordOverwrites) {
  std::mt19937_64 random(seed());
  PendingUpdates updates;
  std::vector<KnownUpdate> added;
  const std::array<std::byte, 64> bytes{};
  const auto any = [&] {
    KnownUpdate update;
    update.storage = 1 + static_cast<uint32_t>(random() % 2);
    // Short names are within their strings, and others are not. A key may be empty.
    update.key = std::string(random() % 3 * 30, 'k') + (random() % 4 == 0 ? "" : "x");
    update.vid = Vid::make(1 + random() % 5, 1 + random() % 100);
    update.offset = static_cast<uint32_t>(random() % 20);
    update.bytes = static_cast<uint32_t>(random() % 20);
    return update;
  };
  uint64_t covered = 0;
  for (uint64_t i = 0; i < rounds(3000, 30000); ++i) {
    const KnownUpdate update = any();
    const Bytes key = std::as_bytes(std::span(update.key));
    const bool expected =
        std::ranges::any_of(added, [&](const KnownUpdate& one) { return one.covers(update); });
    ASSERT_EQ(updates.covers(update.storage, key, update.vid, update.offset, update.bytes),
              expected);
    covered += expected ? 1 : 0;
    if (random() % 20 != 0) continue;
    const Replayed result = updates.add(update.storage, key, update.vid, update.offset,
                                        std::span(bytes).first(update.bytes));
    EXPECT_EQ(result == Replayed::older, expected);
    added.push_back(update);
  }
  EXPECT_GT(covered, 100u);
}

TEST(PendingUpdates, KnowLongNames) {
  PendingUpdates updates;
  const std::string key(kMaxTreeKeyBytes, 'k');
  const std::string other = key.substr(1) + "x";
  const std::array<std::byte, 8> bytes{};
  EXPECT_EQ(updates.add(7, std::as_bytes(std::span(key)), Vid::make(3, 1), 4, bytes),
            Replayed::inserted);
  EXPECT_TRUE(updates.covers(7, std::as_bytes(std::span(key)), Vid::make(3, 1), 4, 8));
  EXPECT_FALSE(updates.covers(7, std::as_bytes(std::span(other)), Vid::make(3, 1), 4, 8));
  EXPECT_FALSE(updates.covers(6, std::as_bytes(std::span(key)), Vid::make(3, 1), 4, 8));
  EXPECT_FALSE(updates.covers(7, std::as_bytes(std::span(key)), Vid::make(3, 2), 4, 8));
}

}  // namespace
}  // namespace atolldb::test
