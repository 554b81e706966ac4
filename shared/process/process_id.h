// Who a process is beyond the reuse of process ids, and how it ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "shared/error.h"
#include "shared/process/unique_fd.h"

namespace atolldb {

/// A process id alone may name another process later; with the start time it does not.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start_time = 0;  // clock ticks since boot: /proc/<pid>/stat, field 22

  bool operator==(const ProcessId&) const = default;
};

/// Nothing when there is no such process, or only its zombie.
std::optional<ProcessId> find_process(pid_t pid);
ProcessId this_process();
bool is_alive(const ProcessId& id);

/// CPU time that a process has used so far, of all its threads, in microseconds; 0 when it is gone.
uint64_t cpu_time_us(pid_t pid);

/// A descriptor that becomes readable when the process ends.
Result<UniqueFd> open_pidfd(pid_t pid);
/// Sends a signal to exactly that process. False when it has ended.
bool send_signal(const UniqueFd& pidfd, int signal);
/// Waits for the end of a child; its wait status as of waitpid.
int reap(pid_t pid);

/// "SIGKILL", or "signal 99" for an unnamed one.
std::string signal_name(int signal);
/// "was killed by SIGKILL", "ended with exit code 6".
std::string describe_exit(int wait_status);

}  // namespace atolldb
