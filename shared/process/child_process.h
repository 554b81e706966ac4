// A child process (coordinator, node): its main function, its control loop, and its services. The
// main thread runs the loop from start to end: it executes the launcher's commands, and sends
// heartbeats.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/logging/logger.h"
#include "shared/memory/segment_space.h"
#include "shared/message/control_server.h"
#include "shared/metrics/exposer.h"
#include "shared/process/handover.h"

namespace atolldb {

/// The checked handover from the launcher.
struct ChildContext {
  Handover handover;
  Config config;
  Logger logger;

  SegmentIdentity segment_identity() const;
};

/// Checks the processor, reads `--handover <fd>` from the command line, checks that the launcher
/// lives, and parses the launcher's config. Then calls `run`. Prints errors to standard error.
/// Returns the exit code for `main`.
int child_main(int argc, char** argv, const std::function<ExitCode(const ChildContext&)>& run);

/// The steps of a process's life. A step may take long; the loop sends heartbeats meanwhile. Steps
/// never run concurrently.
struct ChildSteps {
  std::function<Result<void>()> prepare;
  std::function<Result<void>()> attach;
  /// Returns JSON for the launcher. The loop sends it with "running".
  std::function<Result<std::string>()> start;
  /// `argument`: JSON from the launcher.
  std::function<Result<void>(const std::string& argument)> open;
  std::function<void()> drain;
  std::function<void()> stop;
  /// Called before every heartbeat, also while a step runs. Returns whether the process makes
  /// progress. If it does not, the loop sends no heartbeat.
  std::function<bool()> beat;
};

/// Lets other threads of the process send a line to the launcher ("stop-requested").
class LauncherLink {
 public:
  explicit LauncherLink(int channel_fd) : fd_(channel_fd) {}
  bool send(const std::string& line) const;
  /// Reports that the cluster cannot continue. The launcher stops the cluster, and gives `error` to
  /// the user.
  bool report_failure(const Error& error) const;

 private:
  int fd_;
};

/// Runs until the launcher commands STOP or closes the channel, or until a step fails. Returns the
/// exit code of the process. If there are too few file descriptors, runs no step and returns
/// `resources`.
ExitCode run_child(const Handover& handover, std::chrono::milliseconds heartbeat, Logger logger,
                   ChildSteps steps);

/// Control requests and metrics of the process.
class ChildServices {
 public:
  explicit ChildServices(Logger logger) : logger_(std::move(logger)) {}

  /// Binds the control endpoint, for requests of at most `max_request_bytes`. If the config enables
  /// metrics, also binds their port (see metrics_port for `port_offset`), or a free one as
  /// metrics.on_taken_port says. REQUIRES: the objects that `handler` and `collectable` use live
  /// until `stop`.
  Result<void> start(const Config& config, const std::string& control_endpoint,
                     ControlHandler handler, size_t max_request_bytes, uint32_t port_offset,
                     std::shared_ptr<prometheus::Collectable> collectable);
  /// After this call no request is served.
  void stop();
  /// Returns the endpoints of the running process, to which the process adds others. The launcher
  /// gets them as text.
  Json endpoints() const;

 private:
  Result<void> start_metrics(const Config& config, uint32_t port_offset,
                             const std::shared_ptr<prometheus::Collectable>& collectable);

  Logger logger_;
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<MetricsExposer> exposer_;
};

}  // namespace atolldb
