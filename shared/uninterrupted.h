// System calls that a signal handler has interrupted are made again.
#pragma once

#include <cerrno>

namespace atolldb {

/// Calls `call`, which answers like a system call, until it is not interrupted. Returns its answer:
/// -1 and errno, which is not EINTR, on failure. Not for calls with a timeout, which must shrink.
template <typename Call>
auto uninterrupted(Call&& call) {
  for (;;) {
    const auto answer = call();
    if (answer != -1 || errno != EINTR) return answer;
  }
}

}  // namespace atolldb
