// Random numbers of TPC-C: uniform, non-uniform (NURand) and strings.
#include "bench/tpcc/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "bench/tpcc/inputs.h"
#include "bench/tpcc/text.h"
#include "tests/support/seed.h"

namespace atolldb::tpcc {
namespace {

TEST(Random, EqualSeedsGiveEqualSequencesAndOthersDoNot) {
  Random first(7);
  Random second(7);
  Random other(8);
  uint32_t equal = 0;
  for (int i = 0; i < 1'000; ++i) {
    const uint64_t value = first.next();
    EXPECT_EQ(value, second.next());
    if (value == other.next()) ++equal;
  }
  EXPECT_EQ(equal, 0u);
}

TEST(Random, UniformReachesBothBoundsAndNothingBeyondThem) {
  Random random(test::seed());
  std::array<uint32_t, 11> counts{};
  for (int i = 0; i < 110'000; ++i) {
    const uint32_t value = random.uniform(5, 15);
    ASSERT_GE(value, 5u);
    ASSERT_LE(value, 15u);
    ++counts[value - 5];
  }
  // About 10,000 draws of each number are expected. Ten standard deviations are 950.
  for (const uint32_t count : counts) EXPECT_NEAR(count, 10'000, 950);
}

TEST(Random, NurandStaysInItsRangeAndPrefersNumbersWithManyBits) {
  Random random(test::seed());
  const uint32_t c = random.uniform(0, 1023);
  std::vector<uint32_t> counts(3'001);
  constexpr uint32_t kDraws = 3'000'000;
  for (uint32_t i = 0; i < kDraws; ++i) {
    const uint32_t value = random.nurand(1023, c, 1, 3'000);
    ASSERT_GE(value, 1u);
    ASSERT_LE(value, 3'000u);
    ++counts[value];
  }
  // A uniform distribution would give each number about 1,000. This distribution is far from
  // uniform.
  std::sort(counts.begin(), counts.end());
  EXPECT_LT(counts[300], 500u);
  EXPECT_GT(counts[2'900], 2'000u);
}

TEST(Random, NurandAddsItsConstantModuloTheRange) {
  Random first(3);
  Random second(3);
  for (int i = 0; i < 1'000; ++i) {
    const uint32_t plain = first.nurand(255, 0, 0, 999);
    EXPECT_EQ(second.nurand(255, 100, 0, 999), (plain + 100) % 1'000);
  }
}

TEST(NurandConstants, KeepTheDeltaOfClause2161BetweenLoadAndRunForAllSeeds) {
  for (uint64_t load_seed = 0; load_seed < 500; ++load_seed) {
    for (uint64_t run_seed = 0; run_seed < 20; ++run_seed) {
      const NurandConstants load = NurandConstants::for_load(load_seed);
      const NurandConstants run = NurandConstants::for_run(load_seed, run_seed);
      const int delta =
          std::abs(static_cast<int>(load.last_name) - static_cast<int>(run.last_name));
      ASSERT_GE(delta, 65);
      ASSERT_LE(delta, 119);
      ASSERT_NE(delta, 96);
      ASSERT_NE(delta, 112);
      ASSERT_LE(run.last_name, 255u);
      ASSERT_LE(run.customer_id, 1023u);
      ASSERT_LE(run.item_id, 8191u);
    }
  }
}

TEST(NurandConstants, DeltasAtTheEdgesAreJudgedAsTheClauseSays) {
  for (const auto& [delta, valid] : std::vector<std::pair<uint32_t, bool>>{{64, false},
                                                                           {65, true},
                                                                           {95, true},
                                                                           {96, false},
                                                                           {97, true},
                                                                           {111, true},
                                                                           {112, false},
                                                                           {113, true},
                                                                           {119, true},
                                                                           {120, false}}) {
    EXPECT_EQ(is_valid_last_name_delta(10, 10 + delta), valid) << delta;
    EXPECT_EQ(is_valid_last_name_delta(10 + delta, 10), valid) << delta;
  }
}

TEST(Selection, PicksExactlyTheWantedNumberAtRandomPlaces) {
  Random random(test::seed());
  uint32_t first_half = 0;
  for (int round = 0; round < 200; ++round) {
    Selection selection(300, 3'000);
    uint32_t picked = 0;
    for (int i = 0; i < 3'000; ++i) {
      if (!selection.next(random)) continue;
      ++picked;
      if (i < 1'500) ++first_half;
    }
    ASSERT_EQ(picked, 300u);
  }
  EXPECT_NEAR(first_half, 200 * 150, 1'000);
}

TEST(Text, LastNamesAreMadeOfTheSyllablesOfTheirDigits) {
  EXPECT_EQ(last_name(0).view(), "BARBARBAR");
  EXPECT_EQ(last_name(371).view(), "PRICALLYOUGHT");
  EXPECT_EQ(last_name(40).view(), "BARPRESBAR");
  EXPECT_EQ(last_name(999).view(), "EINGEINGEING");
  std::vector<std::string> names;
  for (uint32_t i = 0; i < 1'000; ++i) names.emplace_back(last_name(i).view());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()) - names.begin(), 1'000);
}

TEST(Text, AlphanumericStringsHave128DifferentCharactersAndAllTheirLengths) {
  Random random(test::seed());
  std::array<bool, 256> seen{};
  std::array<uint32_t, 25> lengths{};
  for (int i = 0; i < 20'000; ++i) {
    Text<24> text{};
    a_string(random, text, 14, 24);
    ++lengths[text.view().size()];
    for (const char c : text.view()) seen[static_cast<unsigned char>(c)] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 128);
  EXPECT_FALSE(seen[0]);
  for (uint32_t length = 14; length <= 24; ++length) EXPECT_GT(lengths[length], 0u) << length;
  for (uint32_t length = 0; length < 14; ++length) EXPECT_EQ(lengths[length], 0u) << length;
}

TEST(Text, OriginalIsPlantedInsideTheTextAndFoundAgain) {
  Random random(test::seed());
  for (int i = 0; i < 10'000; ++i) {
    Text<50> text{};
    a_string(random, text, 26, 50);
    const size_t length = text.view().size();
    EXPECT_FALSE(contains_original(text));
    plant_original(random, text);
    EXPECT_TRUE(contains_original(text));
    EXPECT_EQ(text.view().size(), length);
  }
}

TEST(Text, ZipCodesEndInFiveOnes) {
  Random random(test::seed());
  Text<9> zip{};
  zip_code(random, zip);
  EXPECT_EQ(zip.view().size(), 9u);
  EXPECT_EQ(zip.view().substr(4), "11111");
  for (const char c : zip.view()) EXPECT_TRUE(c >= '0' && c <= '9');
}

}  // namespace
}  // namespace atolldb::tpcc
