// The process of one node: sockets, metrics and the launcher's channel around a `Node`.
#include <memory>
#include <string>
#include <utility>

#include "shared/base/try.h"
#include "shared/metrics/node_metrics.h"
#include "shared/process/child_process.h"
#include "shared/process/run_paths.h"
#include "soc/node/node.h"

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
    ATOLL_TRY(services.start(
        config, node_endpoint(config, id), handle, kMaxControlBytes, 1 + id,
        std::make_shared<NodeMetrics>(id, *node.view().shared[id], node.metrics(),
                                      *node.view().control, &node.procedure_metrics())));
    ATOLL_TRY(node.listen_for_sessions(session_socket_path(config.cluster.run_dir, id)));
    return services.endpoints_text();
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

}  // namespace
}  // namespace atolldb

int main(int argc, char** argv) { return atolldb::child_main(argc, argv, atolldb::run_node); }
