// `atoll config check|show FILE`: validates a config without starting anything.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "ops/cli/command.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

Result<void> check(const std::string& file, const std::vector<std::string>& settings) {
  ATOLL_ASSIGN(const Config config, load_config_file(file, settings));
  std::printf("%s: valid: cluster \"%s\", %zu nodes\n", file.c_str(), config.cluster.name.c_str(),
              config.nodes.size());
  return {};
}

Result<void> show(const std::string& file, const std::vector<std::string>& settings) {
  ATOLL_ASSIGN(const Config config, load_config_file(file, settings));
  std::printf("%s", show_config(config).c_str());
  return {};
}

}  // namespace

void add_config_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("config", "Validate or show a config file");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* help,
                       Result<void> (*run)(const std::string&, const std::vector<std::string>&)) {
    CLI::App* command = group->add_subcommand(name, help);
    const auto file = std::make_shared<std::string>();
    command->add_option("FILE", *file, "The config file")->required();
    add_set_option(*command, invocation.choice.settings);
    command->callback([&invocation, file, run] {
      invocation.run = [&invocation, file, run] { return run(*file, invocation.choice.settings); };
    });
  };
  add("check", "Check a config file and print every mistake", check);
  add("show", "Print the effective values and where each comes from", show);
}

}  // namespace atolldb::cli
