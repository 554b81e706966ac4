// Runs a command of the user by /bin/sh. The other threads of the process are not affected.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "shared/base/error.h"

namespace atolldb {

/// Runs the command and waits for its end. If its exit code is not 0, returns code failed, the
/// reason and the end of its output (OutputTail). Thread: any.
///
/// Kills the command, with all processes that it has started, in three cases: after `timeout`
/// (returns code failed), when `is_cancelled` returns true (returns code not_running), and when the
/// calling thread or its process is killed. `is_cancelled` may be empty.
///
/// The command has no standard input, and no descriptor of this process. Processes that outlive the
/// command can no longer write to its output.
Result<void> run_shell_command(const std::string& command, std::chrono::milliseconds timeout,
                               const std::function<bool()>& is_cancelled);

/// Returns the text as one word of a command. Quotes texts with other characters than letters,
/// digits and `_./-,+@:=`.
std::string quote_for_shell(const std::string& text);

}  // namespace atolldb
