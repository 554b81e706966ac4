// `atoll procedure ls|call|reload`: lists procedures and jobs, calls a procedure, and loads new
// versions of libraries.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>

#include "ops/cli/cluster_call.h"
#include "ops/cli/command.h"
#include "ops/cli/terminal.h"
#include "shared/base/base64.h"
#include "shared/base/try.h"
#include "shared/process/run_paths.h"
#include "soc/procedure/procedure.h"

namespace atolldb::cli {
namespace {

struct ProcedureOptions {
  std::string name;
  std::string input;
  std::string input_file;
  std::string isolation;  // empty: the default of the procedure
  uint32_t snapshot = 0;
  uint32_t node = 0;
  std::string library;  // empty: all of the config
  bool json = false;
};

/// Added to the procedure's time limit, for the transfer of request and reply.
constexpr std::chrono::milliseconds kMargin{5'000};

Result<Json> ask(const ClusterChoice& choice, uint32_t node, ControlOperation operation,
                 const Json& body) {
  ATOLL_ASSIGN(const Config config, find_running(choice));
  if (node >= config.nodes.size()) {
    return make_error(ExitCode::usage, "--node " + std::to_string(node) + ": cluster \"" +
                                           config.cluster.name + "\" has nodes 0 to " +
                                           std::to_string(config.nodes.size() - 1));
  }
  const auto timeout = config.procedures.time_limit.get() + kMargin;
  return call_node(config, node, operation, body, timeout);
}

Result<void> list(const ClusterChoice& choice, const ProcedureOptions& options) {
  ATOLL_ASSIGN(const Json answer,
               ask(choice, options.node, ControlOperation::procedure_list, Json::object()));
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

Result<std::string> input_of(const ProcedureOptions& options) {
  if (options.input_file.empty()) return options.input;
  std::ifstream file(options.input_file, std::ios::binary);
  // Reads at most one byte more than the limit. That suffices to detect an input that is too long,
  // and a device file may never end.
  std::string text(size_t{kMaxProcedureInputBytes} + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (!file.is_open() || file.bad()) {
    return make_error(ExitCode::usage, "--input-file " + options.input_file +
                                           ": cannot be read: give the path of a file");
  }
  if (text.size() > kMaxProcedureInputBytes) {
    return make_error(ExitCode::usage, "--input-file " + options.input_file +
                                           ": is longer than the limit of " +
                                           std::to_string(kMaxProcedureInputBytes) +
                                           " bytes: split the work into several calls");
  }
  return text;
}

/// Prints text with a line end, and binary output unchanged.
void print_output(const Json& answer) {
  const auto bytes = find_binary(answer, "output");
  if (!bytes || bytes->empty()) return;
  std::fwrite(bytes->data(), 1, bytes->size(), stdout);
  if (is_utf8({reinterpret_cast<const char*>(bytes->data()), bytes->size()})) std::putchar('\n');
}

/// Prints the output as text, or in base64 if it is no text.
void print_output_json(const std::string& procedure, const Json& answer) {
  const auto bytes = find_binary(answer, "output").value_or(std::span<const std::byte>());
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Json whole = {{"schema_version", 1}, {"procedure", procedure}};
  if (is_utf8(text)) {
    whole["output"] = text;
  } else {
    whole["output_base64"] = to_base64(bytes);
  }
  std::printf("%s\n", whole.dump(2).c_str());
}

Result<void> call(const ClusterChoice& choice, const ProcedureOptions& options) {
  ATOLL_ASSIGN(const std::string input, input_of(options));
  Json body = {{"name", options.name}, {"input", to_binary(std::as_bytes(std::span(input)))}};
  if (!options.isolation.empty()) body["isolation"] = options.isolation;
  if (options.snapshot != 0) body["snapshot"] = options.snapshot;
  ATOLL_ASSIGN(const Json answer,
               ask(choice, options.node, ControlOperation::procedure_call, body));
  const std::string status = answer.value("status", "");
  if (status == "ok") {
    options.json ? print_output_json(options.name, answer) : print_output(answer);
    return {};
  }
  const std::string why = answer.value("message", "");
  return make_error(ExitCode::failed, "procedure \"" + options.name + "\": " + status +
                                          (why.empty() ? "" : ": " + why) +
                                          ": nothing was committed");
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
    return call_node(config_, node, operation, {{"token", tokens_[node]}}, kMargin);
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

}  // namespace

void add_procedure_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("procedure", "List, call and reload procedures");
  group->require_subcommand(1);
  const auto options = std::make_shared<ProcedureOptions>();
  const auto add_for_all = [&](const char* name, const char* help,
                               Result<void> (*run)(const ClusterChoice&, const ProcedureOptions&)) {
    return add_cluster_command(*group, invocation, name, help, options, run);
  };
  const auto add = [&](const char* name, const char* help,
                       Result<void> (*run)(const ClusterChoice&, const ProcedureOptions&)) {
    CLI::App* command = add_for_all(name, help, run);
    command->add_option("--node", options->node, "Node to ask")->capture_default_str();
    return command;
  };
  add_json_option(*add("ls", "List procedures and jobs", list), options->json);
  CLI::App* calling = add("call", "Run a procedure as one transaction; print its output", call);
  add_json_option(*calling, options->json);
  calling->add_option("NAME", options->name, "Name of the procedure")->required();
  CLI::Option* input = calling->add_option("INPUT", options->input, "Its input, as text");
  calling->add_option("--input-file", options->input_file, "Its input, from a file")
      ->excludes(input);
  calling
      ->add_option("--isolation", options->isolation,
                   "Isolation level of the transaction [the one of the procedure's library]")
      ->check(CLI::IsMember({"serializable", "snapshot", "snapshot_read_only"}));
  calling->add_option("--snapshot", options->snapshot,
                      "Snapshot to read, the newest or a pinned one; only with snapshot_read_only");
  CLI::App* reloading = add_for_all("reload", "Load new versions of procedure libraries", reload);
  reloading->add_option("LIBRARY", options->library,
                        "Path or file name of a library of the config [all]");
  add_json_option(*reloading, options->json);
}

}  // namespace atolldb::cli
