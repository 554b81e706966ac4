// `atoll config check|show|reload`: validates a config without starting anything, and changes the
// config of a running cluster.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ops/cli/command.h"
#include "ops/cli/config_data.h"
#include "ops/cli/config_places.h"
#include "ops/cli/terminal.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/config/config_values.h"

namespace atolldb::cli {
namespace {

/// Returns a machine on which every valid config can run.
Machine any_machine() {
  Machine machine;
  machine.cpus.resize(kMaxCpus);
  std::iota(machine.cpus.begin(), machine.cpus.end(), 0);
  machine.numa_nodes.resize(config_limits::kMaxNumaNode + 1);
  std::iota(machine.numa_nodes.begin(), machine.numa_nodes.end(), 0);
  machine.memory_bytes = UINT64_MAX;
  return machine;
}

Json to_json(const ConfigError& error) {
  return {{"file", error.file}, {"line", error.line},         {"column", error.column},
          {"key", error.key},   {"expected", error.expected}, {"got", error.got},
          {"hint", error.hint}, {"text", error.to_string()}};
}

Json to_json(const std::vector<ConfigFinding>& findings, bool is_error) {
  Json list = Json::array();
  for (const ConfigFinding& finding : findings) {
    if (finding.is_error == is_error)
      list.push_back({{"key", finding.key}, {"text", finding.text}});
  }
  return list;
}

void print_findings(const std::string& file, const std::vector<ConfigFinding>& findings) {
  for (const ConfigFinding& finding : findings) {
    std::fprintf(stderr, "%s: %s%s: %s\n", file.c_str(),
                 finding.is_error ? "" : "warning: ", finding.key.c_str(),
                 printable(finding.text).c_str());
  }
}

Result<void> print_mistakes(const ConfigFileOptions& options,
                            const std::vector<ConfigError>& errors) {
  if (options.json) {
    Json mistakes = Json::array();
    for (const ConfigError& error : errors) mistakes.push_back(to_json(error));
    print_config_json({{"schema_version", 1},
                       {"file", options.file},
                       {"valid", false},
                       {"mistakes", mistakes},
                       {"errors", Json::array()},
                       {"warnings", Json::array()}});
  } else {
    std::fprintf(stderr, "%s", to_string(errors).c_str());
  }
  return make_error(ExitCode::config, "");
}

Result<void> check(const ClusterChoice& choice, const ConfigFileOptions& options) {
  const Machine machine = options.any_machine ? any_machine() : Machine::detect();
  ATOLL_ASSIGN(const auto config, read_config_file(options.file, choice.settings, machine));
  if (!config) return print_mistakes(options, config.error());
  std::vector<ConfigFinding> findings;
  if (!options.any_machine) {
    findings = check_places(*config);
    for (ConfigFinding& each : check_libraries(*config)) findings.push_back(std::move(each));
  }
  for (const UnusedSetting& setting : unused_settings(*config)) {
    findings.push_back({false, setting.key, setting.value + " has no effect: " + setting.reason});
  }
  const bool is_valid = std::ranges::none_of(findings, &ConfigFinding::is_error);
  if (options.json) {
    print_config_json({{"schema_version", 1},
                       {"file", options.file},
                       {"valid", is_valid},
                       {"cluster", config->cluster.name},
                       {"nodes", config->nodes.size()},
                       {"mistakes", Json::array()},
                       {"errors", to_json(findings, true)},
                       {"warnings", to_json(findings, false)}});
  } else {
    print_findings(options.file, findings);
    if (is_valid) {
      std::printf("%s: valid: cluster \"%s\", %zu nodes\n", options.file.c_str(),
                  config->cluster.name.c_str(), config->nodes.size());
    }
  }
  return is_valid ? Result<void>() : make_error(ExitCode::config, "");
}

Result<void> show(const ClusterChoice& choice, const ConfigFileOptions& options) {
  ATOLL_ASSIGN(const Config config, load_config_file(options.file, choice.settings));
  if (options.json) {
    print_config_json(config_values_json(config));
  } else {
    std::printf("%s", show_config(config).c_str());
  }
  return {};
}

}  // namespace

void print_config_json(const Json& json) { std::printf("%s\n", json.dump(2).c_str()); }

void add_config_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("config", "Validate or show a config file, or reload it");
  group->require_subcommand(1);
  const auto options = std::make_shared<ConfigFileOptions>();
  const auto add = [&](const char* name, const char* help, auto run) {
    CLI::App* command = group->add_subcommand(name, help);
    add_set_option(*command, invocation.choice.settings);
    add_json_option(*command, options->json);
    command->callback([&invocation, options, run] {
      invocation.run = [&invocation, options, run] { return run(invocation.choice, *options); };
    });
    return command;
  };
  CLI::App* checking = add("check", "Check a config file and print every mistake", check);
  checking->add_option("FILE", options->file, "The config file")->required();
  checking->add_flag("--any-machine", options->any_machine,
                     "Check the file only, and not the CPUs, memory, folders and libraries of this "
                     "machine");
  add("show", "Print the effective values and where each comes from", show)
      ->add_option("FILE", options->file, "The config file")
      ->required();
  CLI::App* reloading = add(
      "reload", "Change a running cluster to the values of its file that can change at run time",
      reload_config);
  add_cluster_options(*reloading, invocation);
  reloading->add_flag("--dry-run", options->dry_run, "Print the changes, and make none");
}

}  // namespace atolldb::cli
