// Tests of the encoding of plans and results, on valid and damaged bytes.
#include "engine/gleaner/snapshot_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

using Random = std::mt19937_64;

std::string random_text(Random& random, size_t most) {
  std::string text(random() % (most + 1), '\0');
  for (char& letter : text) letter = static_cast<char>(random());
  return text;
}

template <typename Number>
Number any(Random& random) {
  return static_cast<Number>(random());
}

PlannedStorage random_storage(Random& random) {
  PlannedStorage storage;
  storage.id = any<uint32_t>(random);
  storage.type = static_cast<StorageType>(random() % 4);
  storage.payload_bytes = any<uint32_t>(random);
  storage.record_count = random();
  storage.base_root = SnapshotPointer(random());
  storage.has_victims = random() % 2 == 0;
  storage.has_victims_below = random() % 2 == 0;
  for (uint64_t i = random() % 5; i > 0; --i) {
    storage.partitions.push_back(
        {random_text(random, 8), {any<uint16_t>(random), any<uint16_t>(random)}});
  }
  return storage;
}

PlannedStream random_stream(Random& random) {
  PlannedStream planned;
  planned.stream = {random_text(random, 100),
                    any<uint16_t>(random),
                    any<uint16_t>(random),
                    random(),
                    {},
                    {},
                    random()};
  if (random() % 2 == 0) planned.stream.start_epoch = random();
  if (random() % 2 == 0) planned.stream.cluster_uuid = ClusterUuid{any<uint8_t>(random)};
  planned.last_epoch = random();
  return planned;
}

SnapshotPlan random_plan(Random& random) {
  SnapshotPlan plan;
  plan.snapshot = any<uint32_t>(random);
  plan.base = any<uint32_t>(random);
  plan.base_epoch = random();
  plan.epoch = random();
  plan.salvages = random() % 2 == 0;
  plan.merges_runs = random() % 2 == 0;
  for (uint64_t i = random() % 4; i > 0; --i) plan.victims.push_back(any<uint32_t>(random));
  plan.cluster_uuid = {any<uint8_t>(random), any<uint8_t>(random)};
  for (uint64_t i = random() % 4; i > 0; --i) plan.storages.push_back(random_storage(random));
  for (uint64_t i = random() % 4; i > 0; --i) {
    PlannedMapper& mapper =
        plan.mappers.emplace_back(PlannedMapper{any<uint16_t>(random), any<uint16_t>(random), {}});
    for (uint64_t s = random() % 3; s > 0; --s) mapper.streams.push_back(random_stream(random));
  }
  for (uint64_t i = random() % 4; i > 0; --i) {
    plan.reducers.push_back({any<uint16_t>(random), any<uint16_t>(random)});
  }
  for (uint64_t i = random() % 4; i > 0; --i) {
    plan.files.push_back(
        {any<uint32_t>(random), any<uint32_t>(random), random_text(random, 100), random()});
  }
  return plan;
}

std::vector<CapturedRange> random_ranges(Random& random) {
  std::vector<CapturedRange> ranges(random() % 5);
  for (CapturedRange& range : ranges) {
    range = {any<uint32_t>(random), random(), random(), random() % 2 == 0};
  }
  return ranges;
}

void expect_same(const SnapshotPlan& a, const SnapshotPlan& b) {
  EXPECT_EQ(a.snapshot, b.snapshot);
  EXPECT_EQ(a.base, b.base);
  EXPECT_EQ(a.base_epoch, b.base_epoch);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.salvages, b.salvages);
  EXPECT_EQ(a.merges_runs, b.merges_runs);
  EXPECT_EQ(a.victims, b.victims);
  EXPECT_EQ(a.cluster_uuid, b.cluster_uuid);
  EXPECT_EQ(a.storages, b.storages);
  EXPECT_EQ(a.reducers, b.reducers);
  EXPECT_EQ(a.files, b.files);
  ASSERT_EQ(a.mappers.size(), b.mappers.size());
  for (size_t m = 0; m < a.mappers.size(); ++m) {
    EXPECT_EQ(a.mappers[m].node, b.mappers[m].node);
    EXPECT_EQ(a.mappers[m].mapper, b.mappers[m].mapper);
    ASSERT_EQ(a.mappers[m].streams.size(), b.mappers[m].streams.size());
    for (size_t s = 0; s < a.mappers[m].streams.size(); ++s) {
      const PlannedStream& one = a.mappers[m].streams[s];
      const PlannedStream& other = b.mappers[m].streams[s];
      EXPECT_EQ(one.last_epoch, other.last_epoch);
      EXPECT_EQ(one.stream.directory, other.stream.directory);
      EXPECT_EQ(one.stream.node, other.stream.node);
      EXPECT_EQ(one.stream.logger, other.stream.logger);
      EXPECT_EQ(one.stream.incarnation, other.stream.incarnation);
      EXPECT_EQ(one.stream.start_epoch, other.stream.start_epoch);
      EXPECT_EQ(one.stream.cluster_uuid, other.stream.cluster_uuid);
      EXPECT_EQ(one.stream.covered_epoch, other.stream.covered_epoch);
    }
  }
}

std::vector<ComposedPartition> random_composed(Random& random) {
  std::vector<ComposedPartition> all(random() % 4);
  for (ComposedPartition& partition : all) {
    partition = {any<uint32_t>(random), any<uint32_t>(random), {}, random(), random(), random()};
    for (uint64_t i = random() % 10; i > 0; --i) {
      partition.pages.push_back({random(), SnapshotPointer(random()), any<uint32_t>(random),
                                 any<uint32_t>(random), random(), random()});
    }
    partition.records = {random(), random(), random()};
    for (std::vector<LivePages>* counts : {&partition.written, &partition.replaced}) {
      counts->resize(random() % 4, {any<uint32_t>(random), any<uint32_t>(random),
                                    any<uint32_t>(random), random(), random()});
    }
  }
  return all;
}

using Encoded = std::vector<std::byte>;

/// Truncated bytes must be rejected. Changed bytes must be rejected, or decode to a value that is
/// encoded by exactly these bytes.
template <typename Decode, typename Encode>
void expect_robust(const Encoded& bytes, Random& random, Decode decode, Encode encode) {
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_FALSE(decode(std::span(bytes).first(length))) << length;
  }
  Encoded longer = bytes;
  longer.resize(bytes.size() + 3);
  ASSERT_FALSE(decode(longer));
  for (int i = 0; i < 100; ++i) {
    Encoded changed = bytes;
    changed[random() % changed.size()] = static_cast<std::byte>(random());
    const auto decoded = decode(changed);
    if (decoded) {
      EXPECT_EQ(encode(*decoded), changed);
    }
  }
}

TEST(PlanCodec, GivesThePlanBackAndRefusesWhatItDidNotWrite) {
  Random random(seed());
  for (uint64_t round = 0; round < rounds(100, 2000); ++round) {
    const SnapshotPlan plan = random_plan(random);
    const Encoded bytes = encode_plan(plan);
    const auto decoded = decode_plan(bytes);
    ASSERT_TRUE(decoded) << decoded.error().message;
    expect_same(*decoded, plan);
    expect_robust(bytes, random, decode_plan, encode_plan);
  }
}

TEST(PlanCodec, GivesComposedPartitionsBackAndRefusesWhatItDidNotWrite) {
  Random random(seed());
  for (uint64_t round = 0; round < rounds(100, 2000); ++round) {
    const std::vector<ComposedPartition> composed = random_composed(random);
    const Encoded bytes = encode_composed(composed);
    const auto decoded = decode_composed(bytes);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, composed);
    expect_robust(bytes, random, decode_composed, encode_composed);
  }
  EXPECT_FALSE(decode_plan(encode_composed({})));
  EXPECT_FALSE(decode_captured(encode_composed({})));
  EXPECT_FALSE(decode_composed(encode_plan({})));
}

TEST(PlanCodec, GivesCapturedRangesBackAndRefusesWhatItDidNotWrite) {
  Random random(seed());
  for (uint64_t round = 0; round < rounds(100, 2000); ++round) {
    const std::vector<CapturedRange> ranges = random_ranges(random);
    const Encoded bytes = encode_captured(ranges);
    const auto decoded = decode_captured(bytes);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, ranges);
    expect_robust(bytes, random, decode_captured, encode_captured);
  }
}

TEST(PlanCodec, DoesNotTakeMemoryForACountThatCannotBe) {
  // The bytes are a correct magic number and the largest count.
  Encoded bytes = encode_composed({});
  std::ranges::fill(std::span(bytes).subspan(sizeof(uint32_t)), std::byte{0xff});
  EXPECT_FALSE(decode_composed(bytes));
}

}  // namespace
}  // namespace atolldb::test
