// What every Atoll process does before anything else, and what its threads may ask for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "shared/error.h"
#include "shared/process/unique_fd.h"

namespace atolldb {

/// Whether this processor has what the binaries were compiled for (x86-64-v3).
Result<void> check_processor();

/// The kernel kills the calling process when the *thread* that created it ends. False when `parent`
/// has died already. Async-signal-safe: may be called between fork and exec.
bool die_with_parent(pid_t parent);

/// Blocks these signals in the calling thread (and those it starts later); reads of the descriptor
/// give them as signalfd_siginfo.
Result<UniqueFd> receive_signals(std::initializer_list<int> signals);

/// Lets the calling thread run on these CPUs only. Empty: leaves it as it is.
Result<void> pin_thread(std::span<const int32_t> cpus);

/// What tools show for the calling thread: `top -H`, /proc/<pid>/task/*/comm. Cut at 15 bytes.
void name_thread(const std::string& name);

/// As many open files as the hard limit allows: a cluster has several descriptors per node.
void raise_open_files_limit();

}  // namespace atolldb
