// Runs a command of the user by /bin/sh, beside the threads of a process.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "shared/base/error.h"

namespace atolldb {

/// Returns when the command has ended. Returns code failed with how it ended, unless with exit code
/// 0. Kills it, with all processes of its group, after `timeout` (code failed) or when
/// `is_cancelled` returns true (code not_running); it may be empty. The command has no standard
/// input, no descriptor of this process but standard output and error, and dies with the calling
/// thread. Thread: any.
Result<void> run_shell_command(const std::string& command, std::chrono::milliseconds timeout,
                               const std::function<bool()>& is_cancelled);

}  // namespace atolldb
