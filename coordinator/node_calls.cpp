#include "coordinator/node_calls.h"

#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

Result<void> on_all_nodes(const Config& config,
                          const std::function<Result<void>(uint32_t node)>& action) {
  CHECK(!config.nodes.empty() && action);
  std::vector<Result<void>> results(config.nodes.size());
  {
    std::vector<std::jthread> threads;
    for (uint32_t node = 0; node < results.size(); ++node) {
      threads.emplace_back([&, node] { results[node] = action(node); });
    }
  }
  std::optional<Error> worst;
  for (uint32_t node = 0; node < results.size(); ++node) {
    if (results[node]) continue;
    const Error& error = results[node].error();
    // Prefers an error with another code than `failed`, because it names the first cause.
    if (worst && (worst->code != ExitCode::failed || error.code == ExitCode::failed)) continue;
    worst = Error{error.code, "node " + std::to_string(node) + ": " + error.message};
  }
  if (worst) return std::unexpected(*worst);
  return {};
}

Result<void> ask_all_nodes(const Config& config, const NodeCall& call_node,
                           ControlOperation operation, const Json& body) {
  return on_all_nodes(config, [&](uint32_t node) -> Result<void> {
    ATOLL_TRY(call_node(node, operation, body));
    return {};
  });
}

Json sum_of_progress(const std::vector<Json>& answers) {
  std::map<std::string, uint64_t> sums;
  for (const Json& answer : answers) {
    if (!answer.is_object()) continue;
    for (const auto& [name, value] : answer.items()) {
      if (name != "v" && value.is_number_unsigned()) sums[name] += value.get<uint64_t>();
    }
  }
  return sums;
}

}  // namespace atolldb
