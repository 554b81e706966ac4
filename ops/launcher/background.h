// Runs a launcher for a command: in the foreground until a signal, or in the background.
#pragma once

#include <functional>
#include <string>

#include "ops/launcher/launcher.h"
#include "shared/base/error.h"
#include "shared/config/config.h"

namespace atolldb {

/// Starts a cluster and supervises it. The first SIGINT or SIGTERM stops the cluster in order, the
/// second at once. Calls `on_running` when the cluster runs. `options`: this function fills in the
/// descriptors. REQUIRES: the main thread calls the function before other threads exist, because it
/// blocks signals for all of them.
Result<void> run_foreground(const Config& config, const std::function<void()>& on_running,
                            LaunchOptions options = {});

/// Closes all descriptors above 2 and leaves the working directory of the caller. So a background
/// cluster does not keep the caller's locks and mounts in use. REQUIRES: the process uses no
/// relative path and no descriptor above 2 afterwards.
void leave_caller();

/// Forks a launcher into the background (own session, log in <log_dir>/launcher.log). Returns when
/// the cluster runs, or an error with the reason why it does not. With options.until_readable it
/// also returns after a call of options.on_recovering that names a snapshot. REQUIRES: the process
/// has one thread.
Result<void> start_background(const Config& config, LaunchOptions options = {});

}  // namespace atolldb
