// Start-up of every Atoll process: processor check, signals, limits, thread names and pinning.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "shared/base/error.h"
#include "shared/base/unique_fd.h"

namespace atolldb {

/// Checks that this processor supports the instructions that the binaries need (x86-64-v3).
Result<void> check_processor();

/// Lets the kernel kill the calling process when the *thread* that created it ends. Returns false
/// if `parent` has already died. Async-signal-safe: may be called between fork and exec.
bool die_with_parent(pid_t parent);

/// Blocks these signals in the calling thread and in the threads that it starts later. Returns a
/// signalfd, from which the caller reads the signals as signalfd_siginfo.
Result<UniqueFd> receive_signals(std::initializer_list<int> signals);

/// Restricts the calling thread to these CPUs. Does nothing if there are none. `key`: the key of
/// the node in the config that lists them, for the error.
Result<void> pin_thread(std::span<const int32_t> cpus, std::string_view key);

/// Gives the calling thread the policy SCHED_BATCH, if the system supports it. When the thread
/// wakes up, it does not preempt a running thread. Its share of the processors stays the same.
void become_batch_thread();

/// Asks the scheduler to run the calling thread soon after it wakes up, for threads that work
/// briefly and that clients wait for. From Linux 6.12 on, the thread then preempts busy threads
/// before their time slice ends. Does nothing on older systems. Its share of the processors and its
/// priority stay the same.
void become_prompt_thread();

/// Sets how soon the kernel's I/O scheduler executes the reads and writes of the calling thread, if
/// the system and the scheduler support that. `first`: before those of other threads. Without the
/// right CAP_SYS_NICE, only before those of the same class (of use with bfq, not with mq-deadline).
/// `last`: after those of all other threads.
enum class IoPriority : uint8_t { first, last };
void set_io_priority(IoPriority priority);

/// Sets the thread name that `top -H` and /proc/<pid>/task/*/comm show. Truncated to 15 bytes.
void name_thread(const std::string& name);

/// From now on, malloc takes blocks of kLargeBlockBytes or more from the system one by one, and
/// returns each when it is freed. By default glibc raises this size up to 32 MiB as blocks are
/// freed. Then the buffers of snapshot jobs fragment the heap, which grows for minutes.
void return_large_blocks();
inline constexpr int kLargeBlockBytes = 1 << 20;

/// Raises the limit of open files to the hard limit: a cluster has several descriptors per node.
void raise_open_files_limit();

}  // namespace atolldb
