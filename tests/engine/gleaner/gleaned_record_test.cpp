// Tests of gleaned records: their layout and their sort order.
#include "engine/gleaner/gleaned_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/log/log_blocks.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

struct One {
  One(LogType type, const std::string& key, const std::string& payload, uint64_t vid,
      uint16_t offset = 0)
      : memory(1) {
    begin_block(block(), Vid(vid).epoch(), 5);
    block().header.node = 200;
    CHECK(add_record(block(), type, 9, vid, std::as_bytes(std::span(key)),
                     std::as_bytes(std::span(payload)), offset));
  }
  LogBlock& block() { return memory.all()[0]; }
  LogRecord& record() { return *reinterpret_cast<LogRecord*>(block().payload); }
  const LogRecord& gleaned(StorageType type) {
    CHECK(gleaned_bytes(record()) <= kMaxGleanedBytes);
    SortKey key{};
    if (type == StorageType::sequential) {
      write_gleaned_append(record(), block().header, out, key);
    } else {
      key = write_gleaned(record(), type, out);
    }
    return *key.record;
  }
  BlockBuffer memory;
  alignas(8) std::byte out[kMaxGleanedBytes];
};

std::string text(const std::byte* bytes, size_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}

TEST(GleanedRecord, ArrayIndexesOrderLikeBytes) {
  One one(LogType::update, std::string("\x01\x02\0\0\0\0\0\0", 8), "value", Vid::make(7, 3).word(),
          12);
  const LogRecord& gleaned = one.gleaned(StorageType::array);
  EXPECT_EQ(key_of(gleaned), std::string_view("\0\0\0\0\0\0\x02\x01", 8));
  EXPECT_EQ(text(gleaned.payload(), gleaned.payload_bytes), "value");
  EXPECT_EQ(gleaned.payload_offset, 12);
  EXPECT_EQ(gleaned.type, LogType::update);
  EXPECT_EQ(gleaned.vid, Vid::make(7, 3).word());
  EXPECT_EQ(gleaned.length, LogRecord::bytes(8, 5));
}

TEST(GleanedRecord, TreeKeysAreKeptAndUnusedRoomIsElided) {
  One one(LogType::insert, "abc", "0123456789", Vid::make(7, 3).word());
  one.record().length += 64;  // a worker may allocate more than it uses
  const LogRecord& gleaned = one.gleaned(StorageType::mastertree);
  EXPECT_EQ(key_of(gleaned), "abc");
  EXPECT_EQ(text(gleaned.payload(), gleaned.payload_bytes), "0123456789");
  EXPECT_EQ(gleaned.length, LogRecord::bytes(3, 10));
}

TEST(GleanedRecord, EveryAppendGetsAKeyOfItsOwn) {
  const uint64_t vid = Vid::make(0x123456789, 0x2abcde, Vid::kDeleted).word();
  One one(LogType::append, "", "payload", vid, 0x1f2e);
  const LogRecord& gleaned = one.gleaned(StorageType::sequential);
  EXPECT_EQ(key_of(gleaned),
            std::string_view("\0\0\0\x01\x23\x45\x67\x89\xc8\x05\0\x2a\xbc\xde\x1f\x2e", 16));
  EXPECT_EQ(text(gleaned.payload(), gleaned.payload_bytes), "payload");
  EXPECT_EQ(gleaned.payload_offset, 0);
  EXPECT_EQ(gleaned.length, LogRecord::bytes(16, 7));
  EXPECT_EQ(gleaned_bytes(one.record()), gleaned.length);
}

TEST(GleanedRecord, RefusesWhatDoesNotFitItsStorage) {
  PlannedStorage array;
  array.type = StorageType::array;
  array.payload_bytes = 16;
  array.record_count = 3;
  const std::string index("\x02\0\0\0\0\0\0\0", 8);
  const auto defect = [](One one, const PlannedStorage& storage) -> std::string {
    const char* found = defect_in_storage(one.record(), storage);
    return found == nullptr ? "" : found;
  };
  const std::string eight(8, 'p');
  EXPECT_EQ(defect(One(LogType::update, index, eight, 1, 8), array), "");
  EXPECT_EQ(defect(One(LogType::update, index, eight, 1, 9), array),
            "writes beyond the end of its array record");
  EXPECT_EQ(defect(One(LogType::update, "\x03" + index.substr(1), eight, 1), array),
            "has an index beyond the end of its array");
  EXPECT_EQ(defect(One(LogType::update, index.substr(1), eight, 1), array),
            "has a key that is not an array index");
  EXPECT_EQ(defect(One(LogType::insert, index, eight, 1), array),
            "is not an update, but belongs to an array");
  PlannedStorage heap;
  heap.type = StorageType::sequential;
  EXPECT_EQ(defect(One(LogType::append, "", eight, 1), heap), "");
  EXPECT_EQ(defect(One(LogType::append, "k", eight, 1), heap), "is an append with a key");
  EXPECT_EQ(defect(One(LogType::insert, "k", eight, 1), heap),
            "is not an append, but belongs to a sequential storage");
  PlannedStorage tree;
  tree.type = StorageType::mastertree;
  EXPECT_EQ(defect(One(LogType::erase, "k", "", 1), tree), "");
  EXPECT_EQ(defect(One(LogType::append, "", eight, 1), tree),
            "is an append, but belongs to a Master-tree");
}

TEST(GleanedRecord, KeysThatEndBeforeABoundaryCountAsIfZerosFollowed) {
  using namespace std::literals;
  const std::string low = "ab"s + std::string(6, '\0');
  EXPECT_FALSE(is_before("ab", low)) << "its slice is the boundary";
  EXPECT_FALSE(is_before("ab\0"s, low));
  EXPECT_FALSE(is_before("ab\0\0\0\0\0\0x"s, low));
  EXPECT_TRUE(is_before("aa\xff\xff\xff\xff\xff\xff"s, low));
  EXPECT_TRUE(is_before("a", low));
  EXPECT_TRUE(is_before("", low));
  EXPECT_FALSE(is_before("", "")) << "the first partition has all";
}

TEST(GleanedRecord, SortKeysIgnoreThePaddingOfKeys) {
  for (const size_t bytes : {1u, 7u, 8u, 9u, 15u, 16u}) {
    const std::string key(bytes, 'k');
    One a(LogType::insert, key, "payload", Vid::make(3, 1).word());
    One b(LogType::insert, key, "payload", Vid::make(3, 1).word());
    for (size_t at = bytes; at % 8 != 0; ++at) b.record().key()[at] = std::byte{0xff};
    EXPECT_TRUE(is_same_key(SortKey::of(a.record()), SortKey::of(b.record()))) << bytes;
  }
}

TEST(GleanedRecord, SortKeysOrderLikeKeysAndThenVersions) {
  const uint64_t first = seed();
  std::mt19937_64 random(first);
  // Keys have few different bytes, and lengths around word boundaries. So many keys have common
  // prefixes.
  const auto key = [&] {
    const size_t lengths[] = {0, 1, 7, 8, 9, 15, 16, 17, 24, 40};
    std::string made(lengths[random() % 10], '\0');
    for (char& byte : made) byte = random() % 12 == 0 ? '\xff' : '\0';
    return made;
  };
  for (uint64_t round = 0; round < rounds(20'000, 1'000'000); ++round) {
    const std::string keys[] = {key(), random() % 8 == 0 ? "" : key()};
    const uint64_t vids[] = {Vid::make(1 + random() % 2, random() % 3, random() % 64).word(),
                             Vid::make(1 + random() % 2, random() % 3, random() % 64).word()};
    One a(LogType::insert, keys[0], "", vids[0]);
    One b(LogType::insert, keys[1], "", vids[1]);
    const SortKey left = SortKey::of(a.record());
    const SortKey right = SortKey::of(b.record());
    const bool is_same = keys[0] == keys[1];
    ASSERT_EQ(is_same_key(left, right), is_same) << "ATOLL_SEED=" << first;
    const bool is_less =
        is_same ? Vid(vids[0]).version() < Vid(vids[1]).version() : keys[0] < keys[1];
    ASSERT_EQ(left < right, is_less) << "ATOLL_SEED=" << first << ", round " << round;
  }
}

}  // namespace
}  // namespace atolldb::test
