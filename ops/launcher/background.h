// How commands run a launcher: in the foreground until a signal, or left behind in the background.
#pragma once

#include <functional>
#include <string>

#include "ops/launcher/launcher.h"
#include "shared/config/config.h"
#include "shared/error.h"

namespace atolldb {

/// Starts a cluster and stays with it: the first SIGINT or SIGTERM stops it in order, the second at
/// once. `on_running` is called when it runs. REQUIRES: called by the main thread, before others
/// exist (signals are blocked for all). `options`: the descriptors are filled in.
Result<void> run_foreground(const Config& config, const std::function<void()>& on_running,
                            LaunchOptions options = {});

/// Closes what the caller of a command left open beside the standard streams, and leaves its
/// working directory: a cluster that lives on would keep its locks and its mounts. REQUIRES: no
/// path that the process still uses is relative, and no descriptor above 2 is in use.
void leave_caller();

/// Leaves a launcher behind (own session, log in <log_dir>/launcher.log) and returns when the
/// cluster runs, or with the reason why it does not; with options.until_readable already after a
/// call of options.on_recovering that names a snapshot. REQUIRES: the process has one thread.
Result<void> start_background(const Config& config, LaunchOptions options = {});

}  // namespace atolldb
