// Manual and shell completion: they contain every command and option of the program.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "ops/cli/exit_codes.h"
#include "tests/cluster/cli_run.h"

namespace atolldb::test {
namespace {

using Words = std::vector<std::string>;

const std::string kProgram = std::string(ATOLL_BIN_DIR) + "/atoll";

/// Returns the first capture of `expression` in every line of the text.
std::set<std::string> captures(const std::string& text, const std::string& expression) {
  const std::regex pattern(expression, std::regex::multiline);
  std::set<std::string> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern);
       at != std::sregex_iterator(); ++at) {
    found.insert((*at)[1]);
  }
  return found;
}

class CliManualTest : public ::testing::Test {
 protected:
  CliManualTest() : runner_(folder_) { std::printf("seed: none, nothing here is random\n"); }

  std::string help(Words command) const {
    command.push_back("--help");
    const Ran ran = runner_.atoll(command);
    EXPECT_EQ(ran.code, 0) << ran.error;
    return ran.out;
  }

  static std::set<std::string> subcommands(const std::string& help) {
    const size_t begin = help.find("Subcommands:\n");
    if (begin == std::string::npos) return {};
    const size_t end = help.find("\n\n", begin);
    return captures(help.substr(begin, end - begin), "^  ([a-z]+) ");
  }
  static std::set<std::string> options(const std::string& help) {
    return captures(help, "(--[a-z][a-z-]*)[ ,{]");
  }

  /// Returns all commands without subcommands, and those that also run by themselves.
  std::vector<Words> commands(const Words& above = {}) const {
    const std::set<std::string> names = subcommands(help(above));
    if (names.empty()) return {above};
    std::vector<Words> found;
    if (above.size() > 1) found.push_back(above);  // `bench tpcc`, `bench ycsb`
    for (const std::string& name : names) {
      Words command = above;
      command.push_back(name);
      for (Words& below : commands(command)) found.push_back(std::move(below));
    }
    return found;
  }

  static std::string joined(const Words& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
  }

  /// Returns the completions that bash offers for the last of these words.
  std::string completed(const Words& words) const {
    const std::string script =
        "source '" + std::string(ATOLL_SOURCE_DIR) +
        "/ops/completion/atoll.bash'; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _atoll; "
        "echo \"${COMPREPLY[*]}\"";
    Words arguments = {"-c", script, "bash", kProgram};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const Ran ran = runner_.run("/bin/bash", arguments);
    EXPECT_EQ(ran.error, "") << joined(words);
    return ran.out;
  }

  TestFolder folder_;
  CliRunner runner_;
};

TEST_F(CliManualTest, TheManualHasEveryCommandAndEveryOption) {
  std::string manual = read_text(std::string(ATOLL_SOURCE_DIR) + "/ops/man/atoll.1");
  for (size_t at = 0; (at = manual.find("\\-", at)) != std::string::npos;) manual.erase(at, 1);
  const std::vector<Words> all = commands();
  EXPECT_GE(all.size(), 14u);
  for (const Words& command : all) {
    EXPECT_NE(manual.find("\n.SS atoll " + joined(command)), std::string::npos) << joined(command);
    for (const std::string& option : options(help(command))) {
      EXPECT_NE(manual.find(option), std::string::npos) << joined(command) << " " << option;
    }
  }
  // Conversely, the manual names no option that does not exist.
  std::set<std::string> known = options(help({}));
  for (const Words& command : all) known.merge(options(help(command)));
  for (const std::string& option : captures(manual, "(--[a-z][a-z-]*)")) {
    EXPECT_TRUE(known.contains(option)) << option;
  }
  const std::string readme = read_text(std::string(ATOLL_SOURCE_DIR) + "/README.md");
  for (const auto& [code, words] : cli::kExitCodes) {
    const std::string number = std::to_string(static_cast<int>(code));
    EXPECT_NE(manual.find("\n" + number + "|"), std::string::npos) << number;
    const std::string entry = " " + number + " " + std::string(words);
    EXPECT_NE(readme.find(entry), std::string::npos) << entry;
  }
}

TEST_F(CliManualTest, TheManualIsWellFormed) {
  constexpr const char* kGroff = "/usr/bin/groff";
  ASSERT_EQ(access(kGroff, X_OK), 0) << "groff-base is missing: run ops/setup --test";
  const Ran ran = runner_.run(
      kGroff, {"-t", "-man", "-ww", "-z", std::string(ATOLL_SOURCE_DIR) + "/ops/man/atoll.1"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.error, "");
}

TEST_F(CliManualTest, CompletionOffersCommandsOptionsAndValues) {
  EXPECT_EQ(completed({"sta"}), "status\n");
  EXPECT_EQ(completed({"storage", ""}), "create ls describe drop\n");
  EXPECT_EQ(completed({"storage", "create", "x", "--type", "a"}), "array\n");
  EXPECT_EQ(completed({"status", "--json", "--w"}), "--watch\n");
  EXPECT_EQ(completed({"bench", "ycsb", "--workload", "s"}), "silor\n");
  EXPECT_EQ(completed({"bench", "log", "--backend", "pm"}), "pmem\n");
  EXPECT_EQ(completed({"config", "check", folder_.path() + "/run0.e"}),
            folder_.path() + "/run0.err\n");
  for (const Words& command : commands()) {
    Words words = command;
    words.push_back("--");
    const std::string offered = " " + completed(words);
    for (const std::string& option : options(help(command))) {
      EXPECT_NE(offered.find(" " + option), std::string::npos) << joined(command) << option;
    }
  }
}

}  // namespace
}  // namespace atolldb::test
