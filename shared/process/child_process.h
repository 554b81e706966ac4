// The control loop of a child process (coordinator, node): what its main thread does from start to
// end. It answers the launcher's commands and shows that the process is alive.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "shared/error.h"
#include "shared/logging/logger.h"
#include "shared/process/handover.h"

namespace atolldb {

/// The steps of a process's life; each may take long (the loop keeps beating meanwhile) and none
/// runs at the same time as another.
struct ChildSteps {
  std::function<Result<void>()> prepare;
  std::function<Result<void>()> attach;
  /// The answer is sent along with "running": JSON for the launcher.
  std::function<Result<std::string>()> start;
  /// `argument`: JSON from the launcher.
  std::function<Result<void>(const std::string& argument)> open;
  std::function<void()> drain;
  std::function<void()> stop;
  /// Called before every heartbeat, also while a step runs. False: no progress, so no heartbeat.
  std::function<bool()> beat;
};

/// Lets other threads of the process send a line to the launcher ("stop-requested").
class LauncherLink {
 public:
  explicit LauncherLink(int channel_fd) : fd_(channel_fd) {}
  bool send(const std::string& line) const;
  /// The cluster cannot go on: the launcher ends it and hands `error` to the user.
  bool report_failure(const Error& error) const;

 private:
  int fd_;
};

/// Runs until the launcher says stop or has gone. The exit code of the process.
ExitCode run_child(const Handover& handover, std::chrono::milliseconds heartbeat, Logger logger,
                   ChildSteps steps);

}  // namespace atolldb
