// Values of the command line and the environment: precedence, nodes, origins, and mistakes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "shared/config/config.h"
#include "shared/config/config_keys.h"

namespace atolldb {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

Machine some_machine() { return {{0, 1}, {0, 1, 2, 3}, uint64_t{64} << 30}; }

std::vector<ConfigOverride> settings(const std::vector<std::string>& texts) {
  std::vector<ConfigOverride> overrides;
  for (const std::string& text : texts) {
    auto override = parse_override(text);
    EXPECT_TRUE(override) << text;
    if (override) overrides.push_back(*std::move(override));
  }
  return overrides;
}

Config parsed(std::string_view text, const std::vector<std::string>& texts) {
  auto config = parse_config(text, "/x/t.toml", some_machine(), settings(texts));
  EXPECT_TRUE(config) << to_string(config.error());
  return config ? *config : Config{};
}

std::string errors_of(std::string_view text, const std::vector<std::string>& texts) {
  const auto config = parse_config(text, "/x/t.toml", some_machine(), settings(texts));
  return config ? "" : to_string(config.error());
}

TEST(ConfigOverrides, ReplaceValuesOfTheFileAndTheDefaults) {
  const Config config =
      parsed("[memory]\nvolatile_pool = \"1GiB\"\n",
             {"memory.volatile_pool=64MiB", "cluster.name=other", "memory.lend_pool=false"});
  EXPECT_EQ(config.memory.volatile_pool, 64 * kMiB);
  EXPECT_EQ(config.cluster.name, "other");
  EXPECT_FALSE(config.memory.lend_pool);
  EXPECT_EQ(config.origins.at("memory.volatile_pool"), "--set memory.volatile_pool=64MiB");
  EXPECT_EQ(parsed("", {"cluster.name=a", "cluster.name=\"b\""}).cluster.name, "b")
      << "the last one wins, and quotes are allowed";
}

TEST(ConfigOverrides, AKeyOfNodesHoldsForAllOfThemOrForOne) {
  const Config all = parsed("[nodes]\ncount = 3\n", {"node.workers=2", "node[1].workers=4"});
  ASSERT_EQ(all.nodes.size(), 3u);
  EXPECT_EQ(all.nodes[0].workers, 2u);
  EXPECT_EQ(all.nodes[1].workers, 4u);
  EXPECT_EQ(all.nodes[2].workers, 2u);
  const Config tables = parsed("[[node]]\nworkers = 1\n[[node]]\n", {"node.workers=3"});
  ASSERT_EQ(tables.nodes.size(), 2u);
  EXPECT_EQ(tables.nodes[0].workers, 3u);
  EXPECT_EQ(tables.nodes[1].workers, 3u);
  EXPECT_EQ(parsed("", {"nodes.count=4", "node.workers=1"}).nodes.size(), 4u);
  EXPECT_EQ(parsed("", {"node.workers=1", "nodes.count=4"}).nodes.size(), 4u);
}

TEST(ConfigOverrides, MistakesNameTheSettingAndWhatIsExpected) {
  EXPECT_EQ(errors_of("", {"memory.volatile_poool=1GiB"}),
            "--set memory.volatile_poool=1GiB: memory.volatile_poool: expected a key of the "
            "config, as section.key, got an unknown name; did you mean memory.volatile_pool?\n");
  EXPECT_NE(errors_of("", {"memory.volatile_pool=much"})
                .find("--set memory.volatile_pool=much: memory.volatile_pool: expected"),
            std::string::npos);
  EXPECT_NE(errors_of("", {"memory.lend_pool=maybe"}).find("got \"maybe\""), std::string::npos);
  EXPECT_NE(errors_of("", {"node[2].workers=1"}).find("expected a node from 0 to 1, got node[2]"),
            std::string::npos);
  EXPECT_NE(errors_of("", {"cluster.name=\"a\"\nother = 1"}).find("cluster.name: expected"),
            std::string::npos)
      << "no further key can be added";
  EXPECT_NE(errors_of("[memory]\nx = 1\n", {"workers=1"}).find("--set workers=1: workers"),
            std::string::npos);
  EXPECT_EQ(errors_of("node = []\n", {"node.workers=1"}).find("1844674407"), std::string::npos);
  EXPECT_FALSE(parse_override("memory.volatile_pool"));
  EXPECT_FALSE(parse_override("=1GiB"));
  EXPECT_TRUE(parse_override("cluster.name=")) << "an empty value, which the key may refuse";
}

TEST(ConfigOverrides, TheEnvironmentHasANameForEachKey) {
  ASSERT_EQ(setenv("ATOLL_MEMORY_VOLATILE_POOL", "32MiB", 1), 0);
  ASSERT_EQ(setenv("ATOLL_NODE_WORKERS", "2", 1), 0);
  const auto found = environment_overrides();
  unsetenv("ATOLL_MEMORY_VOLATILE_POOL");
  unsetenv("ATOLL_NODE_WORKERS");
  ASSERT_EQ(found.size(), 2u);
  const auto config = parse_config("", "/x/t.toml", some_machine(), found);
  ASSERT_TRUE(config) << to_string(config.error());
  EXPECT_EQ(config->memory.volatile_pool, 32 * kMiB);
  EXPECT_EQ(config->nodes.at(1).workers, 2u);
  EXPECT_EQ(config->origins.at("memory.volatile_pool"), "ATOLL_MEMORY_VOLATILE_POOL");
  EXPECT_TRUE(environment_overrides().empty());
}

}  // namespace
}  // namespace atolldb
