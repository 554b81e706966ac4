// Reload of configs: which keys differ, which can change, and that readers see the new values.
#include "shared/process/config_reload.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "shared/config/config_keys.h"

namespace atolldb {
namespace {

using std::chrono::milliseconds;

Config small_config() {
  Config config = default_config();
  config.nodes.resize(2);
  return config;
}

std::vector<std::string> changed_keys(const Config& from, const Config& to) {
  std::vector<std::string> keys;
  for (const ConfigChange& change : config_changes(from, to)) keys.push_back(change.key);
  return keys;
}

TEST(ConfigReloadTest, NamesEachKeyThatDiffersWithBothValues) {
  const Config running = small_config();
  EXPECT_TRUE(config_changes(running, running).empty());
  Config wanted = running;
  wanted.gleaner.interval = milliseconds(1'500);
  wanted.nodes[1].workers = 3;
  wanted.log.level = "debug";
  const auto changes = config_changes(running, wanted);
  EXPECT_EQ(changes,
            (std::vector<ConfigChange>{{"node[1].workers", "1", "3", false},
                                       {"gleaner.interval", "\"10min\"", "\"1500ms\"", true},
                                       {"log.level", "\"info\"", "\"debug\"", true}}));
  wanted = running;
  wanted.nodes.resize(3);
  EXPECT_EQ(changed_keys(running, wanted), std::vector<std::string>{"nodes.count"});
}

TEST(ConfigReloadTest, EveryReloadableKeyIsAppliedAndNoOther) {
  uint32_t count = 0;
  for (const ConfigKey& key : config_keys()) {
    if (!key.is_reloadable) continue;
    ++count;
    EXPECT_NE(key.section, kNodeSection) << key.full_name();
  }
  EXPECT_GE(count, 20u);
  Config running = small_config();
  Config wanted = running;
  wanted.gleaner.pool_low_water = 7;
  wanted.gleaner.pacing = false;
  wanted.durability.on_device_hang = DeviceHang::stop;
  wanted.cluster.restart = RestartPolicy::recover;
  wanted.memory.volatile_pool = 4 << 20;
  wanted.log.level = "debug";
  set_live_values(running, wanted);
  EXPECT_EQ(running.gleaner.pool_low_water, 7u);
  EXPECT_EQ(running.gleaner.pacing, false);
  EXPECT_EQ(running.durability.on_device_hang, DeviceHang::stop);
  EXPECT_EQ(changed_keys(running, wanted),
            (std::vector<std::string>{"memory.volatile_pool", "log.level"}));
}

TEST(ConfigReloadTest, AProcessAppliesAllValuesOrNone) {
  const Logger logger = make_silent_logger("reload");
  Config config = small_config();
  const auto refused = [&](const nlohmann::json& values, const std::string& why) {
    const auto done = reload_values(config, values, logger);
    ASSERT_FALSE(done) << values;
    EXPECT_EQ(done.error().code, ExitCode::config);
    EXPECT_NE(done.error().message.find(why), std::string::npos) << done.error().message;
    EXPECT_NE(done.error().message.find("nothing was changed"), std::string::npos);
    EXPECT_TRUE(config_changes(config, small_config()).empty());
  };
  refused({{"gleaner.interval", "\"1s\""}, {"memory.volatile_pool", "\"64MiB\""}},
          "memory.volatile_pool cannot change at run time");
  refused({{"gleaner.interval", "\"1s\""}, {"gleaner.intervall", "1"}}, "gleaner.intervall");
  refused({{"gleaner.interval", "\"1ns\""}}, "gleaner.interval: expected a time");
  refused({{"gleaner.interval", 5}}, "no text");
  refused(nullptr, "no object");
  refused({{"gleaner.pool_low_water", "80"}}, "gleaner.pool_high_water");

  ASSERT_TRUE(reload_values(config, {{"log.level", "\"debug\""}}, logger));
  EXPECT_TRUE(logger->should_log(spdlog::level::debug));
  const auto done = reload_values(config, {{"gleaner.interval", "\"1s\""}}, logger);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(config.gleaner.interval, milliseconds(1'000));
  EXPECT_TRUE(logger->should_log(spdlog::level::debug)) << "the level is kept";
}

TEST(ConfigReloadTest, ReadersSeeOldOrNewValues) {
  Config config = small_config();
  std::atomic<bool> ends{false};
  std::thread reader([&] {
    while (!ends.load(std::memory_order_relaxed)) {
      const uint64_t volume = config.gleaner.log_volume;
      EXPECT_TRUE(volume == 1ULL << 30 || volume == 1ULL << 40) << volume;
    }
  });
  for (int i = 0; i < 1'000; ++i) {
    Config wanted = config;
    wanted.gleaner.log_volume = i % 2 == 0 ? 1ULL << 40 : 1ULL << 30;
    set_live_values(config, wanted);
  }
  ends.store(true, std::memory_order_relaxed);
  reader.join();
}

}  // namespace
}  // namespace atolldb
