// Planned operations of a YCSB worker: operations, nodes and records in the configured shares.
#include "bench/ycsb/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/seed.h"

namespace atolldb::ycsb {
namespace {

constexpr uint32_t kDraws = 200'000;

JobInput small_input() {
  JobInput input;
  input.records = 3'000;
  return input;
}

uint32_t node_of(uint64_t id) { return static_cast<uint32_t>(id >> kNumberBits); }

TEST(PlannedOperations, HaveTheSharesOfTheMix) {
  JobInput input = small_input();
  input.mix = {40, 30, 15, 10, 5};
  Generator generator(input, 0, 3, 0, test::seed());
  std::map<Operation, uint32_t> found;
  std::vector<Planned> one(1);
  for (uint32_t i = 0; i < kDraws; ++i) {
    generator.plan(one);
    ++found[one[0].operation];
  }
  for (uint32_t i = 0; i < kOperations; ++i) {
    EXPECT_NEAR(found[static_cast<Operation>(i)] * 100.0 / kDraws, input.mix[i], 1) << i;
  }
}

TEST(PlannedOperations, AreRemoteAsOftenAsAsked) {
  for (const uint32_t percent : {0u, 1u, 30u, 100u, kAllNodesAlike}) {
    JobInput input = small_input();
    input.remote_percent = percent;
    Generator generator(input, 1, 3, 0, test::seed());
    std::vector<Planned> one(1);
    std::map<uint32_t, uint32_t> found;
    for (uint32_t i = 0; i < kDraws; ++i) {
      generator.plan(one);
      ++found[node_of(one[0].id)];
    }
    const double remote = percent == kAllNodesAlike ? 200.0 / 3 : percent;
    EXPECT_NEAR(found[1] * 100.0 / kDraws, 100 - remote, 1) << percent;
    EXPECT_NEAR(found[0] * 100.0 / kDraws, remote / 2, 1) << percent;
    EXPECT_NEAR(found[2] * 100.0 / kDraws, remote / 2, 1) << percent;
  }
}

TEST(PlannedOperations, NameLoadedRecordsOnlyWhateverStorageAndDistribution) {
  for (const bool is_array : {false, true}) {
    for (const Distribution distribution :
         {Distribution::uniform, Distribution::zipfian, Distribution::latest}) {
      JobInput input = small_input();
      input.is_array = is_array;
      input.distribution = distribution;
      input.shape = {.record_bytes = 100, .fields = 5};
      input.mix = {25, 25, 0, 25, 25};
      const Keyspace keyspace = input.keyspace(3);
      Generator generator(input, 0, 3, 0, test::seed());
      std::vector<Planned> ten(10);
      for (uint32_t i = 0; i < 10'000; ++i) {
        generator.plan(ten);
        for (const Planned& planned : ten) {
          const uint64_t number = keyspace.number_of_id(planned.id);
          EXPECT_EQ(lane_of(number), 0u);
          EXPECT_LT(sequence_of(number), 1'000u);
          if (planned.operation == Operation::scan) {
            EXPECT_TRUE(planned.scan_length >= 1 && planned.scan_length <= 100);
          } else {
            EXPECT_LT(planned.field, 5u);
          }
        }
      }
    }
  }
}

TEST(PlannedOperations, UniformOnesTakeEveryRecordAlike) {
  JobInput input = small_input();
  input.records = 100;
  input.distribution = Distribution::uniform;
  Generator generator(input, 0, 1, 0, test::seed());
  std::map<uint64_t, uint32_t> found;
  std::vector<Planned> one(1);
  for (uint32_t i = 0; i < kDraws; ++i) {
    generator.plan(one);
    ++found[one[0].id];
  }
  EXPECT_EQ(found.size(), 100u);
  for (const auto& [id, count] : found) EXPECT_NEAR(count, kDraws / 100, 300) << id;
}

TEST(Inserts, TakeTheNextKeysOfTheWorkerOnceTheTransactionHasCommitted) {
  JobInput input = small_input();
  input.mix = {0, 0, 100, 0, 0};
  const Keyspace keyspace = input.keyspace(2);
  Generator generator(input, 1, 2, 4, test::seed());
  std::vector<Planned> three(3);
  generator.plan(three);
  EXPECT_EQ(three[2].id, keyspace.id_of(1, number_of(5, 2)));
  generator.plan(three);
  EXPECT_EQ(three[0].id, keyspace.id_of(1, number_of(5, 0))) << "the first plan never committed";
  generator.committed(three);
  EXPECT_EQ(generator.inserted(), 3u);
  generator.plan(three);
  EXPECT_EQ(three[0].id, keyspace.id_of(1, number_of(5, 3)));
}

TEST(Latest, PrefersWhatWasInsertedLastAndNeverGoesBeyondIt) {
  JobInput input = small_input();
  input.distribution = Distribution::latest;
  const Keyspace keyspace = input.keyspace(1);
  Generator generator(input, 0, 1, 0, test::seed());
  generator.set_inserted(50);
  generator.set_inserted_of(0, {40, 20});  // the worker ignores the 40: it knows its own count, 50
  std::map<uint64_t, uint32_t> found;
  std::vector<Planned> one(1);
  for (uint32_t i = 0; i < kDraws; ++i) {
    generator.plan(one);
    ++found[keyspace.number_of_id(one[0].id)];
  }
  for (const auto& [number, count] : found) {
    const uint64_t limit[] = {3'000, 50, 20};
    ASSERT_LT(lane_of(number), 3u);
    EXPECT_LT(sequence_of(number), limit[lane_of(number)]);
  }
  const auto most =
      std::ranges::max_element(found, {}, [](const auto& pair) { return pair.second; });
  EXPECT_EQ(most->first, number_of(1, 49));
  EXPECT_GT(found[number_of(2, 19)], found[number_of(1, 30)]);
  EXPECT_GT(found[number_of(1, 0)], 0u);
}

}  // namespace
}  // namespace atolldb::ycsb
