#include "bench/driver/client_options.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/driver/options.h"
#include "shared/base/try.h"

namespace atolldb::bench {

Result<void> choose_client(std::string_view command, bool is_connected, ClientOptions& options) {
  if (options.client.empty()) options.client = is_connected ? "network" : "node";
  if (!is_connected || options.is_network()) return {};
  return usage_error(command, "--client",
                     fmt::format("--connect reaches no '{}' clients", options.client),
                     "use --client network, or omit it");
}

Result<void> check_clients(std::string_view command, const ClientOptions& options) {
  if (options.client != "node" && options.client != "local" && options.client != "network") {
    return usage_error(
        command, "--client", fmt::format("'{}' is no kind of client", options.client),
        "use node (jobs on the workers), local (sessions of this process) or network "
        "(sessions over TCP)");
  }
  if (options.acknowledge != "durable" && options.acknowledge != "visible") {
    return usage_error(command, "--acknowledge",
                       fmt::format("'{}' is not a time", options.acknowledge),
                       "use durable or visible");
  }
  if (!options.key_file.empty() && !options.is_network()) {
    return usage_error(command, "--key-file", "only network clients have keys",
                       "use --client network, or leave it out");
  }
  // Also refuses NaN.
  if (!(options.think_ms >= 0 && options.think_ms <= ClientOptions::kMaxThinkMs)) {
    return usage_error(command, "--think-time", fmt::format("{} is out of range", options.think_ms),
                       fmt::format("use 0 (none) to {} ms", ClientOptions::kMaxThinkMs));
  }
  if (options.think_ms != 0 && !options.is_used()) {
    return usage_error(command, "--think-time", "jobs on the workers do not think",
                       "use --client local or --client network");
  }
  if (!options.is_used()) return {};
  const Range ranges[] = {{"--pipeline", options.pipeline, 1, ClientOptions::kMaxPipeline}};
  return check_ranges(command, ranges);
}

Result<void> check_client_count(std::string_view command, const ClientOptions& options,
                                uint32_t nodes) {
  const uint32_t most = nodes * ClientOptions::kMaxClientsPerNode;
  if (options.clients <= most) return {};
  return usage_error(command, "--clients", fmt::format("{} is out of range", options.clients),
                     fmt::format("use at most {}", most));
}

std::string clients_text(const ClientOptions& options, uint32_t workers) {
  if (!options.is_used()) return "";
  return fmt::format(
      "clients: {}, each with a {} session and {} requests in flight; latencies are from the "
      "submission to the {} answer{}\n",
      options.clients == 0 ? workers : options.clients, options.client, options.pipeline,
      options.acknowledge,
      options.think_ms == 0
          ? ""
          : fmt::format("; each request follows an answer by {} ms on average", options.think_ms));
}

void put_clients(const ClientOptions& options, nlohmann::json& config) {
  config["client"] = options.client;
  config["clients"] = options.clients;
  config["pipeline"] = options.pipeline;
  config["acknowledge"] = options.acknowledge;
}

}  // namespace atolldb::bench
