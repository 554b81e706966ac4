// The process of one node: sockets, metrics and the launcher's channel around a `Node`.
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/base/try.h"
#include "shared/metrics/node_metrics.h"
#include "shared/process/child_process.h"
#include "shared/process/run_paths.h"
#include "soc/node/node.h"
#include "soc/procedure/registry.h"

namespace atolldb {
namespace {

ExitCode run_node(const ChildContext& context) {
  const Config& config = context.config;
  const uint32_t id = context.handover.node;
  SegmentSpace space(context.handover.segments, context.segment_identity(), id);
  const LauncherLink launcher(context.handover.channel_fd);
  Node node(
      config, id, space, [&](const Error& error) { launcher.report_failure(error); },
      context.logger);
  ChildServices services(context.logger);

  ChildSteps steps;
  steps.prepare = [&] { return node.prepare(); };
  steps.attach = [&] { return node.attach(); };
  steps.start = [&]() -> Result<std::string> {
    ATOLL_TRY(node.start());
    const auto handle = [&node](const ControlRequest& request, const ControlReply& reply) {
      node.handle(request, reply);
    };
    ATOLL_TRY(services.start(config, node_endpoint(config, id), handle, kMaxControlBytes, 1 + id,
                             std::make_shared<NodeMetrics>(
                                 id, *node.view().shared[id], node.metrics(), *node.view().control,
                                 &node.procedure_metrics(), node.network_metrics(),
                                 config.durability.scheme == DurabilityScheme::silor)));
    ATOLL_TRY(node.listen_for_sessions(session_socket_path(config.cluster.run_dir, id)));
    Json endpoints = services.endpoints();
    if (Json network = node.network_endpoint(); !network.is_null()) {
      endpoints["network"] = std::move(network);
    }
    return endpoints.dump();
  };
  steps.open = [](const std::string&) -> Result<void> { return {}; };
  steps.drain = [&] { node.drain(); };
  steps.stop = [&] {
    node.stop();
    services.stop();
  };
  steps.beat = [&] {
    node.beat();
    return true;
  };
  return run_child(context.handover, config.cluster.heartbeat, context.logger, std::move(steps));
}

constexpr std::string_view kCheckLibraries = "--check-libraries";

/// Loads procedure libraries as a node does, for `atoll config check`. They need the symbols that
/// only this program has.
int check_libraries(const std::vector<std::string>& libraries) {
  const auto registry = ProcedureRegistry::load(libraries);
  if (registry) return 0;
  std::fprintf(stderr, "%s\n", registry.error().message.c_str());
  return static_cast<int>(registry.error().code);
}

}  // namespace
}  // namespace atolldb

int main(int argc, char** argv) {
  if (argc > 1 && argv[1] == atolldb::kCheckLibraries) {
    return atolldb::check_libraries(std::vector<std::string>(argv + 2, argv + argc));
  }
  return atolldb::child_main(argc, argv, atolldb::run_node);
}
