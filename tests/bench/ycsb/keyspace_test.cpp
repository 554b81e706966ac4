// Numbers, keys, indexes and content of YCSB records.
#include "bench/ycsb/keyspace.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "bench/common/random.h"
#include "bench/ycsb/record.h"
#include "tests/support/seed.h"

namespace atolldb::ycsb {
namespace {

TEST(Scramble, HasAnInverseAndStaysWithin56Bits) {
  bench::Random random(test::seed());
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t number = random.next() & kNumberMask;
    EXPECT_LE(scramble(number), kNumberMask);
    EXPECT_EQ(unscramble(scramble(number)), number);
  }
  for (const uint64_t number : {uint64_t{0}, uint64_t{1}, kNumberMask}) {
    EXPECT_EQ(unscramble(scramble(number)), number);
  }
}

TEST(Scramble, SpreadsNeighboursOverTheWholeRange) {
  constexpr uint32_t kBuckets = 64;
  constexpr uint32_t kNumbers = 64'000;
  std::vector<uint32_t> found(kBuckets);
  for (uint64_t number = 0; number < kNumbers; ++number) {
    ++found[scramble(number) >> (kNumberBits - 6)];
  }
  for (const uint32_t count : found) {
    EXPECT_NEAR(count, kNumbers / kBuckets, 200);  // more than six standard deviations of 1000
  }
}

TEST(ScatteredRanks, AreAPermutation) {
  for (const uint64_t count : {1ull, 2ull, 3ull, 10ull, 1'000ull, 4'099ull, 65'536ull}) {
    const Scatter scatter(count);
    std::vector<bool> seen(count);
    for (uint64_t rank = 0; rank < count; ++rank) seen.at(scatter.of(rank)) = true;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<int64_t>(count));
  }
}

TEST(Partitions, HoldAllRecordsAndDifferByOneAtMost) {
  for (const uint32_t nodes : {1u, 2u, 3u, 7u, 255u}) {
    const Keyspace keyspace(1'000, nodes, 100, false, false);
    uint64_t sum = 0;
    for (uint32_t node = 0; node < nodes; ++node) {
      sum += keyspace.records_of(node);
      EXPECT_LE(keyspace.records_of(0) - keyspace.records_of(node), 1u);
    }
    EXPECT_EQ(sum, 1'000u);
  }
}

TEST(Ids, NameEachRecordOfTheClusterOnceAndGiveItsNumberBack) {
  constexpr uint32_t kNodes = 3;
  for (const bool is_array : {false, true}) {
    for (const bool is_ordered : {false, true}) {
      const Keyspace keyspace(1'000, kNodes, 100, is_array, is_ordered);
      std::set<uint64_t> ids;
      for (uint32_t node = 0; node < kNodes; ++node) {
        for (uint64_t item = 0; item < keyspace.records_of(node); ++item) {
          const uint64_t id = keyspace.id_of(node, number_of(0, item));
          EXPECT_TRUE(ids.insert(id).second);
          EXPECT_EQ(keyspace.number_of_id(id), item);
          EXPECT_LE(id, keyspace.last_of_partition(id));
          if (is_array) {
            EXPECT_LT(id, keyspace.array_records());
          } else {
            EXPECT_EQ(id >> kNumberBits, node);
          }
        }
      }
    }
  }
}

TEST(Ids, OfInsertedRecordsTellLaneAndSequence) {
  const Keyspace keyspace(1'000, 2, 100, false, false);
  const uint64_t id = keyspace.id_of(1, number_of(250, kSequenceMask));
  EXPECT_EQ(lane_of(keyspace.number_of_id(id)), 250u);
  EXPECT_EQ(sequence_of(keyspace.number_of_id(id)), kSequenceMask);
}

TEST(Records, AreWholeAfterTheLoadAndAfterEveryUpdate) {
  for (const RecordShape shape : {RecordShape{100, 1}, RecordShape{1'000, 10}, RecordShape{16, 1},
                                  RecordShape{69, 3}, RecordShape{2'000, 100}}) {
    std::vector<std::byte> record(shape.record_bytes);
    fill_record(record.data(), shape, 77);
    for (uint32_t field = 0; field < shape.fields; ++field) {
      std::byte* const at = record.data() + shape.offset_of(field);
      for (uint64_t updates = 0; updates < 3; ++updates) {
        EXPECT_EQ(updates_of(at), updates);
        EXPECT_TRUE(is_whole(at, shape.field_bytes(), 77, field));
        EXPECT_TRUE(looks_whole(at, shape.field_bytes(), 77, field));
        EXPECT_FALSE(is_whole(at, shape.field_bytes(), 78, field)) << "another record";
        EXPECT_FALSE(is_whole(at, shape.field_bytes(), 77, field + 1)) << "another field";
        fill_field(at, shape.field_bytes(), 77, field, updates + 1);
      }
    }
  }
}

TEST(Records, EveryFlippedBitOfAFieldShows) {
  constexpr RecordShape kShape{100, 1};
  std::vector<std::byte> record(kShape.record_bytes);
  fill_record(record.data(), kShape, 5);
  for (uint32_t bit = 0; bit < kShape.record_bytes * 8; ++bit) {
    record[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(is_whole(record.data(), kShape.record_bytes, 5, 0)) << bit;
    record[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(Records, AMixOfTwoUpdatesLooksTorn) {
  constexpr RecordShape kShape{100, 1};
  std::vector<std::byte> older(kShape.record_bytes);
  std::vector<std::byte> newer(kShape.record_bytes);
  fill_field(older.data(), kShape.record_bytes, 5, 0, 8);
  fill_field(newer.data(), kShape.record_bytes, 5, 0, 9);
  for (uint32_t cut = 8; cut < 96; cut += 8) {
    std::vector<std::byte> torn = newer;
    std::copy(older.begin() + cut, older.end(), torn.begin() + cut);
    EXPECT_FALSE(looks_whole(torn.data(), kShape.record_bytes, 5, 0)) << cut;
  }
}

}  // namespace
}  // namespace atolldb::ycsb
