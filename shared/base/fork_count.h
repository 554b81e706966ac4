// Tells a process from its children (fork).
#pragma once

#include <cstdint>

namespace atolldb {

/// Returns the number of forks between this process and the first call. So an object that stores
/// the number finds out that it was copied into a child process, where its threads do not exist.
/// Cheap: no system call. Thread: any.
uint32_t fork_count();

}  // namespace atolldb
