// Tests of the key sorter, compared with std::stable_sort.
#include "engine/gleaner/key_sorter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kMaxKeys = 3000;

/// Records with only a key and a VID, and their keys in order of insertion.
class Keys {
 public:
  void add(std::string_view key, uint64_t epoch, uint64_t ordinal) {
    const uint32_t bytes = LogRecord::bytes(static_cast<uint32_t>(key.size()), 0);
    auto words = std::make_unique<uint64_t[]>(bytes / 8);
    auto& record = *reinterpret_cast<LogRecord*>(words.get());
    record.length = bytes;
    record.type = LogType::update;
    record.key_bytes = static_cast<uint16_t>(key.size());
    record.vid = Vid::make(static_cast<uint32_t>(epoch), static_cast<uint32_t>(ordinal)).word();
    std::memcpy(record.key(), key.data(), key.size());
    keys_.push_back(SortKey::of(record));
    records_.push_back(std::move(words));
  }
  std::vector<SortKey>& all() { return keys_; }

 private:
  std::vector<SortKey> keys_;
  std::vector<std::unique_ptr<uint64_t[]>> records_;
};

/// Sorts the keys. Returns the first difference from a stable sort by comparison, or an empty text.
std::string check(KeySorter& sorter, std::vector<SortKey> keys) {
  std::vector<SortKey> expected = keys;
  std::stable_sort(expected.begin(), expected.end());
  const std::span<SortKey> sorted = sorter.sort(keys);
  if (sorted.size() != expected.size()) return "another number";
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] < expected[i] || expected[i] < sorted[i]) return "at " + std::to_string(i);
    if (sorted[i].record != expected[i].record) return "not stable at " + std::to_string(i);
  }
  return "";
}

/// Returns a key of up to `bytes` bytes, each with one of `values` values. Fewer values make more
/// keys equal, or prefixes of others.
std::string random_key(std::mt19937_64& random, uint64_t bytes, uint64_t values, bool is_fixed) {
  std::string key(is_fixed ? bytes : random() % (bytes + 1), '\0');
  for (char& byte : key) byte = static_cast<char>(random() % values * 37);
  return key;
}

TEST(KeySorter, SortsAsComparingDoes) {
  const uint64_t first = seed();
  KeySorter sorter(kMaxKeys);
  for (uint64_t round = 0; round < rounds(300, 20'000); ++round) {
    std::mt19937_64 random(first + round);
    const uint64_t count = random() % (round % 3 == 0 ? 100 : kMaxKeys + 1);
    // Some keys are longer than the part of a key that a SortKey holds.
    const uint64_t bytes = random() % 20;
    const uint64_t values = 1 + random() % (round % 2 == 0 ? 3 : 256);
    const bool is_fixed = random() % 2 == 0;
    const bool is_late = random() % 2 == 0;
    Keys keys;
    for (uint64_t i = 0; i < count; ++i) {
      keys.add(random_key(random, bytes, values, is_fixed), 1 + (is_late ? i : random() % 9),
               random() % 5);
    }
    ASSERT_EQ(check(sorter, keys.all()), "") << "ATOLL_SEED=" << first + round;
    std::sort(keys.all().begin(), keys.all().end());
    ASSERT_EQ(check(sorter, keys.all()), "") << "sorted before, ATOLL_SEED=" << first + round;
  }
}

TEST(KeySorter, TakesWhatDiffersInAllBitsAndInNone) {
  KeySorter sorter(kMaxKeys);
  Keys all;
  Keys none;
  for (uint64_t i = 0; i < kMaxKeys; ++i) {
    const uint64_t words[2] = {i * 0x9e3779b97f4a7c15u, ~i * 0xc2b2ae3d27d4eb4fu};
    all.add({reinterpret_cast<const char*>(words), sizeof words}, 1, 0);
    none.add("warehouse", 1 + (i * 7919) % kMaxKeys, 0);  // a hot record that several workers write
  }
  EXPECT_EQ(check(sorter, all.all()), "");
  EXPECT_EQ(check(sorter, none.all()), "");
  EXPECT_EQ(check(sorter, {}), "");
}

}  // namespace
}  // namespace atolldb::test
