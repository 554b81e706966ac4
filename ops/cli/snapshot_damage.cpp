// `atoll snapshot damage`: lists damage that a running cluster knows of.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ops/cli/cluster_call.h"
#include "ops/cli/snapshot_data.h"
#include "ops/cli/terminal.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

constexpr std::chrono::milliseconds kDamageTimeout{10'000};

void print_scrubs(const Json& nodes) {
  std::vector<std::vector<std::string>> rows = {{"NODE", "CYCLES", "PROGRESS", "READ", "DAMAGED"}};
  for (size_t node = 0; node < nodes.size(); ++node) {
    const Json& scrub = nodes[node];
    rows.push_back({fmt::format("node{}", node), std::to_string(scrub.value("cycles", 0ull)),
                    fmt::format("{} %", scrub.value("percent", 0ull)),
                    format_bytes(scrub.value("bytes_read", 0ull)),
                    std::to_string(scrub.value("damaged", 0ull))});
  }
  std::printf("%s", format_table(rows).c_str());
  for (const Json& scrub : nodes) {
    for (const Json& damage : scrub.value("damage", Json::array())) {
      const auto storage = damage.value("storage", 0u);
      const std::string range = damage.value("range", "");
      std::printf("%s: offset %s: %s%s%s\n", printable(damage.value("file", "")).c_str(),
                  std::to_string(damage.value("offset", 0ull)).c_str(),
                  storage == 0 ? "" : fmt::format("storage {}: ", storage).c_str(),
                  range.empty() ? "" : (printable(range) + ": ").c_str(),
                  printable(damage.value("reason", "")).c_str());
    }
  }
}

void print_unreadable(const Json& ranges) {
  for (const Json& range : ranges) {
    std::printf("storage %s: %s: unreadable since the newest snapshot or earlier: %s\n",
                std::to_string(range.value("storage", 0ull)).c_str(),
                printable(range.value("range", "")).c_str(),
                printable(range.value("reason", "")).c_str());
  }
}

}  // namespace

Result<void> list_damage(const ClusterChoice& choice, const SnapshotOptions& options) {
  ATOLL_ASSIGN(const Config config, find_running(choice));
  ATOLL_ASSIGN(const Json damage, call_coordinator(config, ControlOperation::snapshot_damage,
                                                   Json::object(), kDamageTimeout));
  const Json nodes = damage.value("nodes", Json::array());
  const Json unreadable = damage.value("unreadable", Json::array());
  if (options.json) {
    const Json whole = {{"schema_version", 1}, {"nodes", nodes}, {"unreadable", unreadable}};
    std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return {};
  }
  print_scrubs(nodes);
  print_unreadable(unreadable);
  return {};
}

}  // namespace atolldb::cli
