// The process of one node: sockets and the launcher's channel around a Node object.
#include <memory>
#include <string>
#include <utility>

#include "shared/config/config.h"
#include "shared/message/control_server.h"
#include "shared/metrics/exposer.h"
#include "shared/metrics/node_metrics.h"
#include "shared/process/child_process.h"
#include "shared/process/run_paths.h"
#include "soc/node/node.h"

namespace atolldb {
namespace {

int run_node(const Handover& handover, const Config& config) {
  const Logger logger = make_stderr_logger(handover.role, config.log.level);
  SegmentIdentity identity;
  identity.cluster_uuid[0] = handover.cluster_uuid[0];
  identity.cluster_uuid[1] = handover.cluster_uuid[1];
  identity.config_digest = config_digest(config);
  SegmentSpace space(handover.segments, identity, handover.node);
  Node node(config, handover.node, space, logger);
  std::unique_ptr<ControlServer> server;
  std::unique_ptr<MetricsExposer> exposer;

  ChildSteps steps;
  steps.prepare = [&] { return node.prepare(); };
  steps.attach = [&] { return node.attach(); };
  steps.start = [&]() -> Result<std::string> {
    if (const auto started = node.start(); !started) return std::unexpected(started.error());
    auto bound = ControlServer::start(node_endpoint(config, handover.node),
                                      [&](const ControlRequest& request, ControlReply reply) {
                                        node.handle(request, std::move(reply));
                                      });
    if (!bound) return std::unexpected(bound.error());
    server = *std::move(bound);
    if (config.metrics.enabled) {
      auto serving = MetricsExposer::start(
          config.metrics.listen, metrics_port(config.metrics.base_port, 1 + handover.node),
          std::make_shared<NodeMetrics>(handover.node, *node.view().shared[handover.node],
                                        node.metrics()));
      if (!serving) return std::unexpected(serving.error());
      exposer = *std::move(serving);
    }
    return Json{{"metrics", exposer ? exposer->endpoint() : ""}}.dump();
  };
  steps.open = [](const std::string&) -> Result<void> { return {}; };
  steps.drain = [&] { node.drain(); };
  steps.stop = [&] {
    node.stop();
    server.reset();
    exposer.reset();
  };
  steps.beat = [&] {
    node.beat();
    return true;
  };
  return static_cast<int>(run_child(handover, config.cluster.heartbeat, logger, std::move(steps)));
}

}  // namespace
}  // namespace atolldb

int main(int argc, char** argv) {
  const auto handover = atolldb::begin_child(argc, argv);
  if (!handover) return atolldb::report_and_exit(handover.error());
  const auto config =
      atolldb::parse_config(handover->config_text, "handover", atolldb::Machine::detect());
  if (!config) {
    return atolldb::report_and_exit(
        {atolldb::ExitCode::config, "the launcher's config: " + to_string(config.error())});
  }
  return atolldb::run_node(*handover, *config);
}
