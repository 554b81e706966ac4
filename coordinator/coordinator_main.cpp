// The coordinator process: sockets, metrics, status page and the launcher's channel around a
// `Coordinator`.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"
#include "coordinator/web/status_page.h"
#include "shared/base/try.h"
#include "shared/message/control_client.h"
#include "shared/metrics/cluster_metrics.h"
#include "shared/process/child_process.h"
#include "shared/process/run_paths.h"

namespace atolldb {
namespace {

/// Calls a node and waits for its answer. A node that has ended never answers (R64). The launcher
/// then ends the cluster and knows the reason, so this function gives the launcher a second to
/// report first.
Result<Json> call_node(const std::string& endpoint, ControlOperation operation, const Json& body,
                       const std::atomic<bool>& is_stopping) {
  constexpr std::chrono::milliseconds kPatience{1'000};
  constexpr std::chrono::milliseconds kPause{10};
  const auto stops = [&] { return is_stopping.load(std::memory_order_relaxed); };
  Result<Json> answer = ControlClient(endpoint).call(operation, body, kDdlTimeout, stops);
  if (answer || answer.error().code != ExitCode::coordinator_unreachable) return answer;
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (!stops() && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(kPause);
  }
  return answer;
}

/// Returns all directories with data of the cluster, each once.
std::vector<std::string> data_directories(const Config& config) {
  std::vector<std::string> directories = node_directories(config);
  directories.push_back(config.cluster.data_dir);
  std::ranges::sort(directories);
  const auto repeated = std::ranges::unique(directories);
  directories.erase(repeated.begin(), repeated.end());
  return directories;
}

/// A cluster that measures only has no data that a backup could have.
std::unique_ptr<DiskWatch> watch_disks(const Config& config) {
  DiskWatch::ReadBackupTime read_backup_time;
  if (config.durability.mode == DurabilityMode::durable) {
    read_backup_time = [data_dir = config.cluster.data_dir] { return last_backup_time(data_dir); };
  }
  return std::make_unique<DiskWatch>(data_directories(config), DiskWatch::kPeriod, file_system_room,
                                     std::move(read_backup_time));
}

/// Starts the status page, if the config enables it. Returns null otherwise. REQUIRES: the
/// coordinator has started, and outlives the page.
Result<std::unique_ptr<StatusPage>> start_status_page(const Config& config,
                                                      Coordinator& coordinator) {
  if (!config.status_page.enabled) return nullptr;
  ATOLL_ASSIGN(auto page,
               StatusPage::start(config.status_page,
                                 {.status = [&] { return coordinator.status_for_page(); },
                                  .counts = [&] { return coordinator.counts(); },
                                  .state = [&] { return coordinator.state(); }}));
  coordinator.set_status_page(page->url());
  return page;
}

ExitCode run_coordinator(const ChildContext& context) {
  const Config& config = context.config;
  SegmentSpace space(context.handover.segments, context.segment_identity(), context.handover.node);
  const LauncherLink launcher(context.handover.channel_fd);
  std::atomic<bool> is_stopping{false};
  Coordinator coordinator(
      config, context.handover.incarnation, space,
      [&](uint32_t node, ControlOperation operation, const Json& body) {
        return call_node(node_endpoint(config, node), operation, body, is_stopping);
      },
      LauncherCalls{
          .request_stop =
              [&](bool now) { launcher.send(now ? "stop-now-requested" : "stop-requested"); },
          .report_failure = [&](const Error& error) { launcher.report_failure(error); },
          .report_recovering =
              [&](const std::string& readable) { launcher.send("recovering " + readable); },
          .report_reload = [&](const std::string& values) { launcher.send("reload " + values); }},
      context.logger);
  // Destroyed after `stop`, because its thread may hang with a device.
  std::unique_ptr<DiskWatch> disks;
  ChildServices services(context.logger);
  std::unique_ptr<StatusPage> page;  // made by start; null: there is no page

  ChildSteps steps;
  steps.prepare = [&] { return coordinator.prepare(); };
  steps.attach = [&] { return coordinator.attach(); };
  steps.start = [&]() -> Result<std::string> {
    ATOLL_TRY(coordinator.start());
    if (config.durability.mode != DurabilityMode::off) {
      disks = watch_disks(config);
    }
    ATOLL_TRY(services.start(
        config, config.control.endpoint,
        [&](const ControlRequest& request, const ControlReply& reply) {
          coordinator.handle(request, reply);
        },
        kMaxSmallRequestBytes, 0,
        std::make_shared<ClusterMetrics>(
            *coordinator.control(), coordinator.snapshot_metrics(), context.handover.restarts,
            coordinator.device_metrics(), coordinator.archive_metrics(),
            coordinator.acknowledgement_metrics(), disks.get(), coordinator.checkpoint_metrics(),
            coordinator.node_metrics())));
    ATOLL_ASSIGN(page, start_status_page(config, coordinator));
    Json endpoints = services.endpoints();
    if (page != nullptr) endpoints["status_page"] = page->url();
    return endpoints.dump();
  };
  steps.open = [&](const std::string& argument) {
    const Json metrics = Json::parse(argument, nullptr, false);
    return coordinator.open(metrics.is_object() ? metrics : Json::object());
  };
  steps.drain = [&] { coordinator.drain(); };
  steps.stop = [&] {
    is_stopping.store(true, std::memory_order_relaxed);
    page.reset();
    services.stop();
    coordinator.stop();
  };
  steps.beat = [&] {
    const std::string progress = coordinator.progress();
    if (!progress.empty()) launcher.send("progress " + progress);
    return coordinator.beat();
  };
  return run_child(context.handover, config.cluster.heartbeat, context.logger, std::move(steps));
}

}  // namespace
}  // namespace atolldb

int main(int argc, char** argv) {
  return atolldb::child_main(argc, argv, atolldb::run_coordinator);
}
