// The guard of a user's command is a process between a thread of the cluster and the shell. It ends
// all processes of the command if the thread, or the whole process, is killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <span>

namespace atolldb {

/// Time for which the guard tries to end the processes of the command. A process that waits for a
/// hanging device does not end. After this time the guard kills its process group, and so itself.
inline constexpr std::chrono::milliseconds kGuardPatience{1'000};

/// Returns the memory that holds the command line of this process, or an empty span if its place is
/// unknown. A guard overwrites it: `ps` would show the guard as another process of the cluster.
std::span<char> command_line_in_memory();

/// Runs `arguments` in a child, with the descriptors `input` (of /dev/null) and `output` as its
/// standard streams. Ends as this child ends: with its exit code, or by its signal. Processes that
/// the command leaves behind then continue. On SIGTERM, or when the thread of `parent` that forked
/// the guard ends, kills the command and ends. It kills the command's process group and all its
/// descendants, also those in other groups. `command_line`: from command_line_in_memory. REQUIRES:
/// called in a forked child, so all its calls are async-signal-safe.
[[noreturn]] void guard_command(char* const* arguments, int input, int output, pid_t parent,
                                std::span<char> command_line);

}  // namespace atolldb
