// `atoll version`.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "ops/cli/command.h"
#include "shared/memory/segment_space.h"
#include "shared/message/control_message.h"
#include "soc/procedure/procedure.h"

namespace atolldb::cli {
namespace {

/// As in the project's CMakeLists.txt (a test compares).
constexpr const char* kVersion = "0.1.0";

Result<void> print_version() {
  std::printf("atoll %s\n", kVersion);
  std::printf("  procedure API      %u\n", kProcedureApiVersion);
  std::printf("  memory layout      %u (%016llx)\n", kLayoutVersion,
              static_cast<unsigned long long>(layout_hash()));
  std::printf("  control messages   %d\n", kControlVersion);
  std::printf("  compiler           %s\n", __VERSION__);
  return {};
}

}  // namespace

void add_version_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("version", "Print versions");
  command->callback([&invocation] { invocation.run = print_version; });
}

}  // namespace atolldb::cli
