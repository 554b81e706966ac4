// `atoll version` and `atoll --version`.
#include <atoll/abi.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "ops/cli/command.h"
#include "shared/memory/segment_space.h"
#include "shared/message/control_message.h"
#include "soc/procedure/procedure.h"

namespace atolldb::cli {
std::string version_text() {
  return fmt::format(
      "atoll {}\n"
      "  procedure ABI      {}.{}\n"
      "  procedure API      {}\n"
      "  memory layout      {} ({:016x})\n"
      "  control messages   {}\n"
      "  compiler           {}",
      ATOLL_VERSION, atoll_api::abi::kAbiMajor, atoll_api::abi::kAbiMinor, kProcedureApiVersion,
      kLayoutVersion, layout_hash(), kControlVersion, __VERSION__);
}

void add_version_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("version", "Print versions");
  command->callback([&invocation] {
    invocation.run = []() -> Result<void> {
      std::printf("%s\n", version_text().c_str());
      return {};
    };
  });
}

}  // namespace atolldb::cli
