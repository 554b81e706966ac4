// Guard of a command of the user: a process between a thread of the cluster and the shell. It ends
// all processes of the command if the thread, or the whole process, is killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <span>

namespace atolldb {

/// The guard kills the processes of the command for so long, then ends with those that are left in
/// its group: a call to a device that hangs may keep a process from ending.
inline constexpr std::chrono::milliseconds kGuardPatience{1'000};

/// Returns the command line of this process, as it is in memory. A guard overwrites its copy, so
/// that no list of processes shows it as another process of the cluster. Empty: it is unknown.
std::span<char> command_line_in_memory();

/// Runs `arguments` in a child, with /dev/null's descriptor `input` and `output` as its standard
/// streams. Ends as this child ends: with its exit code, or by its signal. Kills the processes of
/// the command, and ends, when the thread of `parent` that forked ends, or on SIGTERM. They are its
/// process group and all its descendants, also those in other groups. Processes that a command
/// leaves behind at its own end go on. `command_line`: of this process. REQUIRES: called in a
/// forked child, so all its calls are async-signal-safe.
[[noreturn]] void guard_command(char* const* arguments, int input, int output, pid_t parent,
                                std::span<char> command_line);

}  // namespace atolldb
