// `atoll data adopt`: makes moved or copied directories usable after exit code 11 (identity).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "ops/cli/command.h"
#include "ops/cli/terminal.h"
#include "ops/launcher/adopt_data.h"
#include "shared/base/try.h"
#include "shared/file/posix_file_system.h"

namespace atolldb::cli {
namespace {

using Json = nlohmann::json;

struct AdoptOptions {
  bool is_moved = false;
  bool is_copy = false;
  bool json = false;
};

void print_adopted(const Adopted& adopted, const AdoptOptions& options) {
  const std::string& data_dir = adopted.directories.front().path;
  if (!adopted.is_changed) {
    std::printf("%s: every directory is at the place in its owner file: nothing to adopt\n",
                printable(data_dir).c_str());
  } else {
    std::printf("%s: adopted as %s: `atoll up` starts it\n", printable(data_dir).c_str(),
                options.is_copy ? "a copy; its original is not changed" : "moved");
  }
  for (const DirectoryRole& entry : adopted.directories) {
    std::printf("  %-8s %s\n", printable(entry.role).c_str(), printable(entry.path).c_str());
  }
  std::fflush(stdout);
  for (const std::string& warning : adopted.warnings) {
    std::fprintf(stderr, "atoll: %s\n", printable(warning).c_str());
  }
}

void print_json(const Adopted& adopted, const AdoptOptions& options) {
  Json directories = Json::array();
  for (const DirectoryRole& entry : adopted.directories) {
    directories.push_back({{"role", entry.role}, {"path", entry.path}});
  }
  const Json whole = {{"schema_version", 1},
                      {"adoption", options.is_copy ? "copy" : "moved"},
                      {"changed", adopted.is_changed},
                      {"id", adopted.id},
                      {"previous_id", adopted.previous_id},
                      {"directories", directories},
                      {"warnings", adopted.warnings}};
  std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

Result<void> adopt(const ClusterChoice& choice, const AdoptOptions& options) {
  if (options.is_moved == options.is_copy) {
    return make_error(ExitCode::usage,
                      "data adopt: choose --moved (the original is gone) or --copy (the original "
                      "still exists): see `atoll data adopt --help`");
  }
  ATOLL_ASSIGN(const Config config, config_of_new_cluster(choice));
  PosixFileSystem files;
  ATOLL_ASSIGN(
      const auto adopted,
      adopt_data(config, options.is_copy ? AdoptionKind::copy : AdoptionKind::moved, files));
  options.json ? print_json(adopted, options) : print_adopted(adopted, options);
  return {};
}

}  // namespace

void add_data_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("data", "Adopt data directories that were moved or copied");
  group->require_subcommand(1);
  const auto options = std::make_shared<AdoptOptions>();
  CLI::App* command = add_cluster_command(
      *group, invocation, "adopt", "Make moved or copied directories of the config usable again",
      options, adopt);
  command->add_flag("--moved", options->is_moved,
                    "The directories were moved or restored: the cluster keeps its identity");
  command->add_flag("--copy", options->is_copy,
                    "The directories are a copy: they get a new identity, and the original is not "
                    "changed");
  add_json_option(*command, options->json);
}

}  // namespace atolldb::cli
