// Identity of a process that survives the reuse of process ids, and the ways to signal and reap it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "shared/base/error.h"
#include "shared/base/unique_fd.h"

namespace atolldb {

/// Identity of a process. A process id is reused, but together with the start time it is unique.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start_time = 0;  // clock ticks since boot: /proc/<pid>/stat, field 22

  bool operator==(const ProcessId&) const = default;
};

/// Returns nothing if the process does not exist, or is a zombie.
std::optional<ProcessId> find_process(pid_t pid);
ProcessId this_process();
bool is_alive(const ProcessId& id);
/// Returns whether a process that is alive has begun to end. It executes no code of its own any
/// more, but keeps its locks until the kernel has freed its memory.
bool is_ending(const ProcessId& id);

/// Returns the CPU time of all threads of a process so far, in microseconds, or 0 if it has ended.
uint64_t cpu_time_us(pid_t pid);

/// Returns a descriptor that becomes readable when the process ends.
Result<UniqueFd> open_pidfd(pid_t pid);
/// Sends a signal to exactly that process. Returns false if it has ended.
bool send_signal(const UniqueFd& pidfd, int signal);
/// Waits for the end of a child. Returns its wait status, as waitpid gives it.
int reap(pid_t pid);

/// Returns a name like "SIGKILL", or "signal 99" for an unnamed signal.
std::string signal_name(int signal);
/// Returns text like "was killed by SIGKILL" or "ended with exit code 6".
std::string describe_exit(int wait_status);

}  // namespace atolldb
