// Repeats system calls that a signal handler has interrupted.
#pragma once

#include <cerrno>

namespace atolldb {

/// Repeats `call`, which returns like a system call, until it is not interrupted. Returns its
/// result: -1 and errno (never EINTR) on failure. Not for calls with a timeout, which would have to
/// shrink.
template <typename Call>
auto uninterrupted(Call&& call) {
  for (;;) {
    const auto answer = call();
    if (answer != -1 || errno != EINTR) return answer;
  }
}

}  // namespace atolldb
