// Runs a command of the user by /bin/sh. The other threads of the process are not affected.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "shared/base/error.h"

namespace atolldb {

/// Runs the command and waits for its end. If its exit code is not 0, returns code failed, the
/// reason and the end of its output (OutputTail). Kills it and all processes that it has started
/// after `timeout` (code failed), or when `is_cancelled` returns true (code not_running); it may be
/// empty. They are also killed when the calling thread or its process is killed. The command has no
/// standard input, and no descriptor of this process. Processes that it leaves behind can write no
/// more. Thread: any.
Result<void> run_shell_command(const std::string& command, std::chrono::milliseconds timeout,
                               const std::function<bool()>& is_cancelled);

}  // namespace atolldb
