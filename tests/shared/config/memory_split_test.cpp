// The budget memory.total: its parts, their origins, and values that contradict it.
#include "shared/config/memory_split.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shared/base/limits.h"
#include "shared/config/config_values.h"

namespace atolldb {
namespace {

constexpr uint64_t kSplitMib = uint64_t{1} << 20;

Machine large_machine() {
  Machine machine;
  machine.cpus = {0, 1};
  machine.memory_bytes = uint64_t{1} << 50;
  return machine;
}

std::expected<Config, std::vector<ConfigError>> parse_split(
    const std::string& text, const std::vector<std::string>& sets = {}) {
  std::vector<ConfigOverride> overrides;
  for (const std::string& set : sets) overrides.push_back(*parse_override(set));
  return parse_config(text, "/x/t.toml", large_machine(), overrides);
}

Config split_config(const std::string& text, const std::vector<std::string>& sets = {}) {
  const auto config = parse_split(text, sets);
  EXPECT_TRUE(config) << to_string(config.error());
  return config.value_or(Config());
}

std::string split_errors(const std::string& text, const std::vector<std::string>& sets = {}) {
  const auto config = parse_split(text, sets);
  return config ? "" : to_string(config.error());
}

std::string with_total(uint64_t mib, const std::string& more = "") {
  return "[memory]\ntotal = \"" + std::to_string(mib) + "MiB\"\n" + more;
}

TEST(MemorySplit, WithoutATotalTheKeysAreIndependent) {
  const Config config = split_config("[memory]\nvolatile_pool = \"64MiB\"\n");
  EXPECT_EQ(config.memory.total, 0u);
  EXPECT_EQ(config.memory.volatile_pool, 64 * kSplitMib);
  EXPECT_EQ(config.memory.snapshot_cache, Config::Memory().snapshot_cache);
}

TEST(MemorySplit, TheCacheGetsAnEighthAndThePoolTheRest) {
  const Config config = split_config(with_total(1024));
  EXPECT_EQ(config.memory.snapshot_cache, 128 * kSplitMib);
  EXPECT_EQ(config.memory.volatile_pool, 896 * kSplitMib);
  EXPECT_EQ(config.origins.at("memory.volatile_pool"), kOriginOfSplit);
  EXPECT_EQ(config.origins.at("memory.snapshot_cache"), kOriginOfSplit);
  EXPECT_EQ(config.origins.at("memory.total"), "/x/t.toml:2");
  EXPECT_NE(show_config(config).find("# memory.total\n"), std::string::npos);
}

TEST(MemorySplit, TheCacheGetsAQuarterIfThePoolLendsNothing) {
  const Config config = split_config(with_total(1024, "lend_pool = false\n"));
  EXPECT_EQ(config.memory.snapshot_cache, 256 * kSplitMib);
  EXPECT_EQ(config.memory.volatile_pool, 768 * kSplitMib);
}

TEST(MemorySplit, WithoutSnapshotsThePoolGetsNearlyAll) {
  const Config config = split_config(with_total(1024, "[durability]\nscheme = \"silor\"\n"));
  EXPECT_EQ(config.memory.snapshot_cache, kSegmentStepBytes);
  EXPECT_EQ(config.memory.volatile_pool, 1024 * kSplitMib - kSegmentStepBytes);
}

TEST(MemorySplit, EveryTotalIsUsedUpByPartsOfValidSizes) {
  Config config;
  for (uint64_t total = kMinMemoryTotal; total < 600 * kSplitMib; total += kSegmentStepBytes) {
    config.memory.total = total;
    for (const bool lends : {false, true}) {
      config.memory.lend_pool = lends;
      const MemorySplit split = split_memory(config);
      EXPECT_EQ(split.pool + split.cache, total);
      EXPECT_GE(split.pool, split.cache);
      EXPECT_GE(split.cache, kSegmentStepBytes);
      EXPECT_EQ(split.cache % kSegmentStepBytes, 0u);
    }
  }
}

TEST(MemorySplit, ATotalThatIsTooSmallIsReported) {
  EXPECT_EQ(split_errors(with_total(2)),
            "/x/t.toml:2:9: memory.total: expected \"0B\", or at least \"4MiB\", got \"2MiB\"; the "
            "smallest pool and the smallest cache have 2MiB each\n");
  EXPECT_EQ(split_errors(with_total(4)), "");
}

TEST(MemorySplit, OtherSizesBesideATotalAreReported) {
  EXPECT_EQ(split_errors(with_total(1024, "volatile_pool = \"512MiB\"\n")),
            "/x/t.toml:3:17: memory.volatile_pool: expected no value beside memory.total "
            "(\"1GiB\"), whose part is \"896MiB\", got \"512MiB\"; remove it, or remove "
            "memory.total\n");
  EXPECT_EQ(split_errors(with_total(1024, "snapshot_cache = \"64MiB\"\n")),
            "/x/t.toml:3:18: memory.snapshot_cache: expected no value beside memory.total "
            "(\"1GiB\"), whose part is \"128MiB\", got \"64MiB\"; remove it, or remove "
            "memory.total\n");
  const std::string of_setting =
      split_errors("[memory]\nvolatile_pool = \"512MiB\"\n", {"memory.total=1GiB"});
  EXPECT_NE(of_setting.find("memory.volatile_pool: expected no value"), std::string::npos)
      << of_setting;
}

TEST(MemorySplit, TheEffectiveConfigPassesTheCheckAgain) {
  const Config config = split_config("", {"memory.total=1GiB"});
  Config child = split_config(to_toml(config));
  EXPECT_EQ(child.memory, config.memory);
  EXPECT_EQ(config_digest(child), config_digest(config));
  child.durability.mode = DurabilityMode::off;  // as `--durability off` does
  EXPECT_EQ(split_errors(to_toml(child)), "");
}

TEST(MemorySplit, ATotalLargerThanTheMachineIsTheKeyOfTheError) {
  Machine small = large_machine();
  small.memory_bytes = 2048 * kSplitMib;
  const auto config = parse_config(with_total(1024), "/x/t.toml", small);
  ASSERT_FALSE(config);
  const std::string text = to_string(config.error());
  EXPECT_TRUE(text.starts_with("/x/t.toml:2:9: memory.total: expected pools, caches")) << text;
}

}  // namespace
}  // namespace atolldb
