// `atoll version` and `atoll --version`.
#include <atoll/abi.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
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

namespace {

void print_version_json() {
  const Json whole = {{"schema_version", 1},
                      {"version", ATOLL_VERSION},
                      {"procedure_api", kProcedureApiVersion},
                      {"memory_layout", kLayoutVersion},
                      {"layout_hash", fmt::format("{:016x}", layout_hash())},
                      {"control_messages", kControlVersion},
                      {"compiler", __VERSION__}};
  std::printf("%s\n", whole.dump(2).c_str());
}

}  // namespace

void add_version_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("version", "Print versions");
  const auto json = std::make_shared<bool>(false);
  add_json_option(*command, *json);
  command->callback([&invocation, json] {
    invocation.run = [json]() -> Result<void> {
      *json ? print_version_json() : void(std::printf("%s\n", version_text().c_str()));
      return {};
    };
  });
}

}  // namespace atolldb::cli
