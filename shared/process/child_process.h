// Control loop of a child process (coordinator, node). The main thread runs it from start to end:
// it executes the launcher's commands, and sends heartbeats.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "shared/base/error.h"
#include "shared/logging/logger.h"
#include "shared/process/handover.h"

namespace atolldb {

/// The steps of a process's life. A step may take long; the loop sends heartbeats meanwhile. Steps
/// never run concurrently.
struct ChildSteps {
  std::function<Result<void>()> prepare;
  std::function<Result<void>()> attach;
  /// The result is sent with "running": JSON for the launcher.
  std::function<Result<std::string>()> start;
  /// `argument`: JSON from the launcher.
  std::function<Result<void>(const std::string& argument)> open;
  std::function<void()> drain;
  std::function<void()> stop;
  /// Called before every heartbeat, also while a step runs. Returns false if there is no progress;
  /// the loop then sends no heartbeat.
  std::function<bool()> beat;
};

/// Lets other threads of the process send a line to the launcher ("stop-requested").
class LauncherLink {
 public:
  explicit LauncherLink(int channel_fd) : fd_(channel_fd) {}
  bool send(const std::string& line) const;
  /// Reports that the cluster cannot continue. The launcher ends it, and gives `error` to the user.
  bool report_failure(const Error& error) const;

 private:
  int fd_;
};

/// Runs until the launcher says stop or has ended. Returns the exit code of the process.
ExitCode run_child(const Handover& handover, std::chrono::milliseconds heartbeat, Logger logger,
                   ChildSteps steps);

}  // namespace atolldb
