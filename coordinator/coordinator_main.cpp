// The process of the coordinator: sockets and the launcher's channel around a Coordinator object.
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "coordinator/coordinator.h"
#include "shared/config/config.h"
#include "shared/message/control_client.h"
#include "shared/message/control_server.h"
#include "shared/metrics/cluster_metrics.h"
#include "shared/metrics/exposer.h"
#include "shared/process/child_process.h"
#include "shared/process/run_paths.h"

namespace atolldb {
namespace {

/// Walking the pages of a large storage takes its time.
constexpr std::chrono::milliseconds kNodeTimeout{600'000};

int run_coordinator(const Handover& handover, const Config& config) {
  const Logger logger = make_stderr_logger(handover.role, config.log.level);
  SegmentIdentity identity;
  identity.cluster_uuid[0] = handover.cluster_uuid[0];
  identity.cluster_uuid[1] = handover.cluster_uuid[1];
  identity.config_digest = config_digest(config);
  SegmentSpace space(handover.segments, identity, handover.node);
  const LauncherLink launcher(handover.channel_fd);
  Coordinator coordinator(
      config, handover.incarnation, space,
      [&](uint32_t node, std::string_view op, const Json& body) {
        return ControlClient(node_endpoint(config, node)).call(op, body, kNodeTimeout);
      },
      [&](bool now) { launcher.send(now ? "stop-now-requested" : "stop-requested"); }, logger);
  std::unique_ptr<ControlServer> server;
  std::unique_ptr<MetricsExposer> exposer;

  ChildSteps steps;
  steps.prepare = [&] { return coordinator.prepare(); };
  steps.attach = [&] { return coordinator.attach(); };
  steps.start = [&]() -> Result<std::string> {
    if (const auto started = coordinator.start(); !started) {
      return std::unexpected(started.error());
    }
    auto bound = ControlServer::start(config.control.endpoint,
                                      [&](const ControlRequest& request, ControlReply reply) {
                                        coordinator.handle(request, std::move(reply));
                                      });
    if (!bound) return std::unexpected(bound.error());
    server = *std::move(bound);
    if (config.metrics.enabled) {
      auto serving =
          MetricsExposer::start(config.metrics.listen, metrics_port(config.metrics.base_port, 0),
                                std::make_shared<ClusterMetrics>(*coordinator.control()));
      if (!serving) return std::unexpected(serving.error());
      exposer = *std::move(serving);
    }
    return Json{{"metrics", exposer ? exposer->endpoint() : ""}}.dump();
  };
  steps.open = [&](const std::string& argument) {
    const Json metrics = Json::parse(argument, nullptr, false);
    return coordinator.open(metrics.is_object() ? metrics : Json::object());
  };
  steps.drain = [&] { coordinator.drain(); };
  steps.stop = [&] {
    server.reset();
    exposer.reset();
    coordinator.stop();
  };
  steps.beat = [&] { return coordinator.beat(); };
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
  return atolldb::run_coordinator(*handover, *config);
}
