// Tests of every config key: missing, of the wrong type, misspelt, and below, at and above its
// limits.
#include "shared/config/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "shared/base/limits.h"
#include "shared/config/config_keys.h"
#include "shared/config/config_values.h"

namespace atolldb {

static void PrintTo(const ConfigKey& key, std::ostream* out) { *out << key.full_name(); }

namespace {

using namespace config_limits;

/// A machine large enough for every single value at its limit.
Machine big_machine() {
  Machine machine;
  machine.numa_nodes.clear();
  machine.cpus.clear();
  for (int32_t node = 0; node <= kMaxNumaNode; ++node) machine.numa_nodes.push_back(node);
  for (int32_t cpu = 0; cpu < kMaxCpus; ++cpu) machine.cpus.push_back(cpu);
  machine.memory_bytes = 1ULL << 62;
  return machine;
}

std::string messages(std::string_view text, const Machine& machine = big_machine()) {
  const auto config = parse_config(text, "/x/t.toml", machine);
  return config ? "" : to_string(config.error());
}

/// Returns the name of the key as messages show it.
std::string shown_name(const ConfigKey& key) {
  return (key.section == kNodeSection ? "node[0]" : std::string(key.section)) + "." +
         std::string(key.name);
}

/// Returns a file that sets `name` to a TOML value in line 2, in the section of the key.
std::string file_with(const ConfigKey& key, std::string_view name, const std::string& value) {
  const std::string section(key.section);
  return (key.section == kNodeSection ? "[[" + section + "]]" : "[" + section + "]") + "\n" +
         std::string(name) + " = " + value + "\n" +
         // Sets the other key of a pair, so that a limit of this key does not make the other one
         // invalid.
         (key.name == "heartbeat" ? "hang_limit = \"1h\"\n" : "") +
         (key.name == "base_port" ? "[nodes]\ncount = 1\n" : "") +
         (key.name == "max_output" ? "payload_memory = \"2GiB\"\n" : "") +
         (key.name == "payload_memory" ? "max_input = \"64KiB\"\nmax_output = \"64KiB\"\n" : "") +
         (key.name == "loggers" ? "workers = 250\n" : "") +
         (value == "\"measure\"" ? "backend = \"null\"\n" : "") +
         (section == "network" && key.name == "enabled" ? "without_keys = true\n" : "") +
         (key.name == "pool_low_water" ? "pool_high_water = 95\n" : "") +
         (key.name == "pool_high_water" ? "pool_low_water = 1\n" : "") +
         (key.name == "hang_limit" ? "heartbeat = \"10ms\"\n" : "");
}

std::string file_with(const ConfigKey& key, const std::string& value) {
  return file_with(key, key.name, value);
}

std::string value_error(const ConfigKey& key, const std::string& got) {
  const size_t column = key.name.size() + 4;  // after "name = "
  return "/x/t.toml:2:" + std::to_string(column) + ": " + shown_name(key) + ": expected " +
         expected_text(key) + ", got " + got;
}

std::string number_text(const ConfigKey& key, int64_t number) {
  if (key.kind == KeyKind::size) return quote_toml(format_size(number));
  if (key.kind == KeyKind::duration) return quote_toml(format_duration_us(number));
  return std::to_string(number);
}

std::string text_of_bytes(const ConfigKey& key, int64_t bytes) {
  const std::string head = key.kind == KeyKind::name       ? ""
                           : key.kind == KeyKind::endpoint ? "ipc:///"
                                                           : "/";
  return head + std::string(static_cast<size_t>(bytes) - head.size(), 'a');
}

/// Returns the value as messages show it. Long values are cut.
std::string cut(const std::string& text) {
  constexpr size_t kShown = 80;
  if (text.size() <= kShown) return text;
  return text.substr(0, kShown) + "... (" + std::to_string(text.size()) + " bytes)";
}

struct LimitCase {
  std::string value;  ///< in TOML syntax
  std::string got;    ///< the value as the error message shows it; empty: the value is allowed
};

/// Returns values below, at and above the limits of a key.
std::vector<LimitCase> limit_cases(const ConfigKey& key) {
  std::vector<LimitCase> cases;
  const auto bad = [&](const std::string& value) { cases.push_back({value, cut(value)}); };
  const auto good = [&](const std::string& value) { cases.push_back({value, ""}); };
  switch (key.kind) {
    case KeyKind::boolean:
      good("true");
      good("false");
      break;
    case KeyKind::integer:
      good(number_text(key, key.min));
      good(number_text(key, key.max));
      bad(number_text(key, key.min - 1));
      bad(number_text(key, key.max + 1));
      bad("-9223372036854775808");
      bad("9223372036854775807");
      break;
    case KeyKind::size:
    case KeyKind::duration:
      good(number_text(key, key.min));
      good(number_text(key, key.max));
      if (key.min > 0) bad(number_text(key, key.min - key.step));
      bad(number_text(key, key.max + key.step));
      if (key.step > 1) bad(number_text(key, key.min + 1));
      break;
    case KeyKind::choice:
      for (const std::string_view choice : key.choices) {
        // "null" is valid only together with another key's value (config_input_test.cpp).
        if (choice != "null") good(quote_toml(choice));
      }
      bad(quote_toml("qqqqqqqqqq"));
      bad(quote_toml(""));
      break;
    case KeyKind::name:
    case KeyKind::path:
    case KeyKind::endpoint:
      good(quote_toml(text_of_bytes(key, key.kind == KeyKind::endpoint ? 8 : key.min)));
      good(quote_toml(text_of_bytes(key, key.max)));
      bad(quote_toml(text_of_bytes(key, key.max + 1)));
      bad(quote_toml(""));
      bad(quote_toml("a\nb"));
      break;
    case KeyKind::optional_path:
      good(quote_toml(""));
      good(quote_toml(text_of_bytes(key, key.min)));
      good(quote_toml(text_of_bytes(key, key.max)));
      bad(quote_toml(text_of_bytes(key, key.max + 1)));
      bad(quote_toml("a\nb"));
      break;
    case KeyKind::command:
      good(quote_toml(""));
      good(quote_toml("%p %f" + std::string(static_cast<size_t>(key.max) - 5, 'a')));
      bad(quote_toml("%p %f" + std::string(static_cast<size_t>(key.max) - 4, 'a')));
      bad(quote_toml("%p %f\n"));
      break;
    case KeyKind::address:
      for (const char* address : {"127.0.0.1", "0.0.0.0", "::1"}) good(quote_toml(address));
      for (const char* address : {"", "localhost", "256.0.0.1", "1.2.3", "::g"}) {
        bad(quote_toml(address));
      }
      break;
    case KeyKind::paths:
      good("[]");
      good("[" + quote_toml(text_of_bytes(key, key.max)) + "]");
      break;
    case KeyKind::integers:
      good("[]");
      good("[" + std::to_string(key.min) + ", " + std::to_string(key.max) + "]");
      break;
  }
  return cases;
}

class EveryKey : public testing::TestWithParam<ConfigKey> {};

TEST_P(EveryKey, MayBeMissing) {
  const ConfigKey& key = GetParam();
  const auto config = parse_config("", "/x/t.toml", big_machine());
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->origins.contains(shown_name(key)));
  EXPECT_EQ(to_toml(*config), to_toml(default_config(big_machine())));
}

TEST_P(EveryKey, OfAWrongTypeIsNamedWithItsPlace) {
  const ConfigKey& key = GetParam();
  const bool is_text = key.kind != KeyKind::boolean && key.kind != KeyKind::integer &&
                       key.kind != KeyKind::paths && key.kind != KeyKind::integers;
  std::vector<LimitCase> wrong = {{"1.5", "1.5"}, {"{a = 1}", "a table"}, {"2020-01-01", ""}};
  wrong.push_back(is_text || key.kind == KeyKind::boolean ? LimitCase{"7", "7"}
                                                          : LimitCase{"\"x\"", "\"x\""});
  if (key.kind != KeyKind::boolean) wrong.push_back({"true", "true"});
  if (key.kind != KeyKind::paths && key.kind != KeyKind::integers)
    wrong.push_back({"[1]", "a list"});
  for (const LimitCase& test : wrong) {
    const std::string got = test.got.empty() ? test.value : test.got;
    EXPECT_TRUE(messages(file_with(key, test.value)).starts_with(value_error(key, got)))
        << test.value << " gave\n"
        << messages(file_with(key, test.value)) << "not\n"
        << value_error(key, got);
  }
}

TEST_P(EveryKey, IsCheckedBelowAtAndAboveItsLimits) {
  const ConfigKey& key = GetParam();
  for (const LimitCase& test : limit_cases(key)) {
    const std::string text = messages(file_with(key, test.value));
    if (test.got.empty()) {
      EXPECT_EQ(text, "") << test.value;
    } else {
      EXPECT_TRUE(text.starts_with(value_error(key, test.got))) << text << "instead of\n"
                                                                << value_error(key, test.got);
      EXPECT_EQ(std::ranges::count(text, '\n'), 1) << "one mistake, one message:\n" << text;
    }
  }
}

TEST_P(EveryKey, KeepsTheValueOfTheFileAndItsOrigin) {
  const ConfigKey& key = GetParam();
  for (const LimitCase& test : limit_cases(key)) {
    if (!test.got.empty()) continue;
    auto config = parse_config(file_with(key, test.value), "/x/t.toml", big_machine());
    ASSERT_TRUE(config) << to_string(config.error());
    auto node_count = static_cast<uint32_t>(config->nodes.size());
    const std::string value = value_text(key, key.field({*config, config->nodes[0], node_count}));
    const bool is_automatic = key.name == "mappers" || key.name == "reducers" ||
                              key.name == "recovery_threads" ||
                              key.name == "running_workers";  // 0 is replaced (job_threads_test)
    if (is_automatic && test.value == "0") {
      EXPECT_NE(value, "0");
    } else {
      EXPECT_EQ(value, test.value);
    }
    EXPECT_EQ(config->origins.at(shown_name(key)), "/x/t.toml:2");
    if (key.section != kNodesSection) {
      const std::string mark = key.planned ? " (no effect yet)" : "";
      EXPECT_NE(show_config(*config).find("# /x/t.toml:2" + mark + "\n"), std::string::npos);
    }
  }
}

TEST_P(EveryKey, MisspeltIsAnsweredWithTheRightName) {
  const ConfigKey& key = GetParam();
  std::string misspelt(key.name);
  misspelt.back() = misspelt.back() == 'q' ? 'x' : 'q';
  const std::string prefix = shown_name(key).substr(0, shown_name(key).rfind('.'));
  EXPECT_EQ(messages(file_with(key, misspelt, "1")),
            "/x/t.toml:2:1: " + prefix + "." + misspelt + ": expected a key of [" +
                std::string(key.section) + "], got an unknown name; did you mean " +
                std::string(key.name) + "?\n");
}

TEST_P(EveryKey, InAWrongSectionIsAnsweredWithTheRightOne) {
  const ConfigKey& key = GetParam();
  const char* other = key.section == "control" ? "[memory]\n" : "[control]\n";
  const std::string text = messages(other + std::string(key.name) + " = 1\n");
  EXPECT_NE(text.find("an unknown name; did you mean "), std::string::npos) << text;
}

TEST_P(EveryKey, IsDocumentedInTheReferenceFile) {
  const ConfigKey& key = GetParam();
  std::ifstream file(ATOLL_SOURCE_DIR "/configs/reference.toml");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(key.doc.empty());
  EXPECT_NE(text.str().find("\n# Value: " + expected_text(key) + ".\n"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Config, EveryKey, testing::ValuesIn(config_keys()),
                         [](const testing::TestParamInfo<ConfigKey>& test) {
                           return std::string(test.param.section) + "_" +
                                  std::string(test.param.name);
                         });

TEST(ConfigTable, NamesEveryKeyOnce) {
  std::set<std::string> names;
  for (const ConfigKey& key : config_keys()) {
    EXPECT_TRUE(names.insert(key.full_name()).second) << key.full_name();
  }
}

TEST(ConfigTable, HasDefaultsInRange) {
  EXPECT_EQ(messages(to_toml(default_config())), "");
  EXPECT_EQ(default_config().nodes.size(), 2U);
}

TEST(Reference, IsTheTextOfTheTable) {
  const std::string path = ATOLL_SOURCE_DIR "/configs/reference.toml";
  if (std::getenv("ATOLL_WRITE_REFERENCE") != nullptr) std::ofstream(path) << reference_toml();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), reference_toml())
      << "after a change of the table run this test once with ATOLL_WRITE_REFERENCE=1";
  EXPECT_EQ(messages(reference_toml()), "");
}

TEST(Digest, DependsOnEveryKey) {
  const Config original = default_config();
  for (const ConfigKey& key : config_keys()) {
    if (key.section == kNodesSection) continue;
    Config changed = original;
    uint32_t unused = 0;
    std::visit(
        [](auto* value) {
          using T = std::remove_pointer_t<decltype(value)>;
          if constexpr (std::is_same_v<T, bool>) {
            *value = !*value;
          } else if constexpr (std::is_enum_v<T>) {
            *value = static_cast<T>(*value == T{} ? 1 : 0);
          } else if constexpr (std::is_same_v<T, std::string>) {
            *value += "x";
          } else if constexpr (std::is_arithmetic_v<T>) {
            *value = static_cast<T>(*value + 1);
          } else if constexpr (requires { value->emplace_back(); }) {
            value->emplace_back();
          } else {
            *value += T(1);
          }
        },
        key.field({changed, changed.nodes[1], unused}));
    EXPECT_NE(config_digest(changed), config_digest(original)) << key.full_name();
  }
}

}  // namespace
}  // namespace atolldb
