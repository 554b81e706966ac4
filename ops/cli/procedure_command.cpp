// `atoll procedure ls|call|reload`: lists procedures and jobs, calls a procedure, and loads new
// versions of libraries.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>

#include "ops/cli/cluster_call.h"
#include "ops/cli/command.h"
#include "ops/cli/procedure_call.h"
#include "ops/cli/terminal.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

/// Time that a node may take to answer a request that needs no transaction.
constexpr std::chrono::milliseconds kAnswerTimeout{5'000};

Result<void> list(const ClusterChoice& choice, const ProcedureOptions& options) {
  ATOLL_ASSIGN(const Config config, find_running(choice));
  ATOLL_TRY(check_node(config, options.node, "--node " + std::to_string(options.node)));
  ATOLL_ASSIGN(const Json answer, call_node(config, options.node, ControlOperation::procedure_list,
                                            Json::object(), kAnswerTimeout));
  const Json procedures = answer.value("procedures", Json::array());
  if (options.json) {
    const Json whole = {{"schema_version", 1}, {"procedures", procedures}};
    std::printf("%s\n", whole.dump(2).c_str());
    return {};
  }
  std::vector<std::vector<std::string>> rows = {{"NAME", "KIND", "ORIGIN"}};
  for (const Json& entry : procedures) {
    rows.push_back({entry.value("name", ""), entry.value("kind", ""), entry.value("origin", "")});
  }
  std::printf("%s", format_table(rows).c_str());
  return {};
}

/// Returns the libraries that the user names: by path, by file name, or all.
Result<std::vector<std::string>> chosen_libraries(const Config& config, const std::string& name) {
  const std::vector<std::string>& all = config.procedures.libraries;
  if (all.empty()) {
    return make_error(ExitCode::usage, "cluster \"" + config.cluster.name +
                                           "\": has no procedure libraries: add them to "
                                           "procedures.libraries in its config");
  }
  if (name.empty()) return all;
  std::vector<std::string> chosen;
  std::string known;
  for (const std::string& path : all) {
    if (path == name || path.ends_with("/" + name)) chosen.push_back(path);
    known += " " + path;
  }
  if (!chosen.empty()) return chosen;
  return make_error(ExitCode::usage, "library \"" + name + "\": is not one of cluster \"" +
                                         config.cluster.name + "\", which has:" + known);
}

/// Time that a node may take to load a library and to run its load function.
constexpr std::chrono::milliseconds kLoadTimeout{30'000};

/// A new version of a library that the first nodes of the cluster have prepared.
class PreparedVersion {
 public:
  PreparedVersion(const Config& config, std::string library)
      : config_(config), library_(std::move(library)) {}

  /// Prepares the version on all nodes. After an error no node uses it.
  Result<void> prepare() {
    for (uint32_t node = 0; node < config_.nodes.size(); ++node) {
      const auto answer = call_node(config_, node, ControlOperation::library_prepare,
                                    {{"library", library_}}, kLoadTimeout);
      if (!answer) return refuse(node, answer.error());
      tokens_.push_back(answer->value("token", uint64_t{0}));
      const uint32_t checksum = answer->value("checksum", 0u);
      if (node == 0) checksum_ = checksum;
      procedures_ = answer->value("procedures", uint64_t{0});
      if (checksum != checksum_) {
        return refuse(node,
                      {ExitCode::failed, library_ + ": changed while it was loaded: try again"});
      }
    }
    return {};
  }
  /// Puts the version to use. REQUIRES: `prepare` succeeded.
  Result<void> publish() const {
    for (uint32_t node = 0; node < tokens_.size(); ++node) {
      const auto answer = finish(node, ControlOperation::library_publish);
      if (answer) continue;
      return make_error(answer.error().code,
                        "node " + std::to_string(node) + ": " + answer.error().message + ": " +
                            std::to_string(node) + " of " + std::to_string(tokens_.size()) +
                            " nodes use the new version of " + library_ +
                            ": run the command again");
    }
    return {};
  }
  Json describe() const {
    return {{"library", library_}, {"procedures", procedures_}, {"checksum", checksum_}};
  }

 private:
  Result<Json> finish(uint32_t node, ControlOperation operation) const {
    return call_node(config_, node, operation, {{"token", tokens_[node]}}, kAnswerTimeout);
  }
  std::unexpected<Error> refuse(uint32_t node, const Error& error) const {
    for (uint32_t prepared = 0; prepared < tokens_.size(); ++prepared) {
      // A node that cannot be asked replaces the prepared version at the next reload.
      static_cast<void>(finish(prepared, ControlOperation::library_discard));
    }
    return make_error(error.code, "node " + std::to_string(node) + ": " + error.message +
                                      ": the version in use stays in use");
  }

  const Config& config_;
  std::string library_;
  std::vector<uint64_t> tokens_;  // by node
  uint32_t checksum_ = 0;
  uint64_t procedures_ = 0;
};

Result<void> reload(const ClusterChoice& choice, const ProcedureOptions& options) {
  ATOLL_ASSIGN(const Config config, find_running(choice));
  ATOLL_ASSIGN(const std::vector<std::string> libraries, chosen_libraries(config, options.library));
  Json reloaded = Json::array();
  for (const std::string& library : libraries) {
    PreparedVersion version(config, library);
    ATOLL_TRY(version.prepare());
    ATOLL_TRY(version.publish());
    reloaded.push_back(version.describe());
    if (options.json) continue;
    std::printf("reloaded %s on all %zu nodes; procedures and jobs: %s\n", library.c_str(),
                config.nodes.size(), reloaded.back()["procedures"].dump().c_str());
  }
  if (options.json) {
    const Json whole = {
        {"schema_version", 1}, {"nodes", config.nodes.size()}, {"libraries", reloaded}};
    std::printf("%s\n", whole.dump(2).c_str());
  }
  return {};
}

void add_call_options(CLI::App& command, ProcedureOptions& options) {
  add_node_options(command, options);
  add_json_option(command, options.json);
  command.add_option("NAME", options.name, "Name of the procedure")->required();
  CLI::Option* input = command.add_option("INPUT", options.input, "Its input, as text");
  command
      .add_option("--input-file", options.input_file, "Its input, from a file; -: standard input")
      ->type_name("FILE")
      ->excludes(input);
  command
      .add_option("--output", options.output_file,
                  "Write its output to a file, unchanged; -: standard output")
      ->type_name("FILE");
  command
      .add_option("--isolation", options.isolation,
                  "Isolation level of the transaction [the one of the procedure's library]")
      ->check(CLI::IsMember({"serializable", "snapshot", "snapshot_read_only"}));
  command.add_option("--snapshot", options.snapshot,
                     "Snapshot to read, the newest or a pinned one; only with snapshot_read_only");
}

}  // namespace

void add_procedure_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("procedure", "List, call and reload procedures");
  group->require_subcommand(1);
  const auto options = std::make_shared<ProcedureOptions>();
  const auto add_for_all = [&](const char* name, const char* help,
                               Result<void> (*run)(const ClusterChoice&, const ProcedureOptions&)) {
    return add_cluster_command(*group, invocation, name, help, options, run);
  };
  CLI::App* listing = add_for_all("ls", "List procedures and jobs", list);
  listing->add_option("--node", options->node, "Node to ask")->capture_default_str();
  add_json_option(*listing, options->json);
  add_call_options(
      *add_for_all("call", "Run a procedure as one transaction; print its output", call_procedure),
      *options);
  CLI::App* reloading = add_for_all("reload", "Load new versions of procedure libraries", reload);
  reloading->add_option("LIBRARY", options->library,
                        "Path or file name of a library of the config [all]");
  add_json_option(*reloading, options->json);
}

}  // namespace atolldb::cli
