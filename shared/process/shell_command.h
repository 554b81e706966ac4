// Runs a command of the user by /bin/sh, beside the threads of a process.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "shared/base/error.h"

namespace atolldb {

/// Returns when the command has ended. Returns code failed with how it ended and the end of its
/// output (OutputTail), unless with exit code 0. Kills it, with all processes that it has started,
/// after `timeout` (code failed) or when `is_cancelled` returns true (code not_running); it may be
/// empty. The same happens when the calling thread or its process is killed. The command has no
/// standard input, and no descriptor of this process. Processes that it leaves behind can write no
/// more. Thread: any.
Result<void> run_shell_command(const std::string& command, std::chrono::milliseconds timeout,
                               const std::function<bool()>& is_cancelled);

}  // namespace atolldb
