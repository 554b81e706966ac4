#include "shared/process/shell_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "shared/base/check.h"
#include "shared/base/process_id.h"
#include "shared/base/unique_fd.h"
#include "shared/config/config_values.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

constexpr std::chrono::milliseconds kCancelPeriod{50};

/// Runs in the child between fork and exec, so it makes only async-signal-safe calls.
[[noreturn]] void become_shell(char* const* arguments, int input, pid_t parent) {
  constexpr int kCannotRun = 127;
  setpgid(0, 0);  // so that a kill reaches what the shell starts
  if (!die_with_parent(parent)) _exit(kCannotRun);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(input, 0) < 0 || chdir("/") != 0) _exit(kCannotRun);
  // No lock of the cluster leaks into the command (R31).
  close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  execv(arguments[0], arguments);
  _exit(kCannotRun);
}

/// Returns whether the process has ended before `until`.
bool await_end(const UniqueFd& pidfd, std::chrono::steady_clock::time_point until,
               const std::function<bool()>& is_cancelled) {
  CHECK(pidfd.is_open());
  while (!is_cancelled || !is_cancelled()) {
    // Rounded up, so that nothing is left only after `until`.
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd ended = {pidfd.get(), POLLIN, 0};
    const auto wait = static_cast<int>(std::min(left, kCancelPeriod).count());
    if (poll(&ended, 1, std::max(wait, 1)) > 0) return true;
  }
  return false;
}

}  // namespace

Result<void> run_shell_command(const std::string& command, std::chrono::milliseconds timeout,
                               const std::function<bool()>& is_cancelled) {
  CHECK(!command.empty() && timeout.count() > 0);
  std::array<std::string, 3> words = {"/bin/sh", "-c", command};
  const std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(),
                                          nullptr};
  const UniqueFd input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input.is_open()) {
    return make_error(ExitCode::failed,
                      fmt::format("/dev/null: cannot be opened: {}", std::strerror(errno)));
  }
  const auto until = std::chrono::steady_clock::now() + timeout;
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return make_error(ExitCode::failed,
                      fmt::format("/bin/sh: cannot be started: {}", std::strerror(errno)));
  }
  if (pid == 0) become_shell(arguments.data(), input.get(), parent);
  // Also done by the child: whichever comes first, the group exists before it is killed.
  setpgid(pid, pid);
  const Result<UniqueFd> pidfd = open_pidfd(pid);
  const bool has_ended = pidfd && await_end(*pidfd, until, is_cancelled);
  if (!has_ended) kill(-pid, SIGKILL);
  const int status = reap(pid);
  if (!pidfd) return std::unexpected(pidfd.error());
  if (has_ended && status == 0) return {};
  if (has_ended) return make_error(ExitCode::failed, "the command " + describe_exit(status));
  if (std::chrono::steady_clock::now() < until) {
    return make_error(ExitCode::not_running, "the command was killed, because the cluster stops");
  }
  return make_error(ExitCode::failed,
                    fmt::format("the command was killed after {}",
                                format_duration_us(std::chrono::microseconds(timeout).count())));
}

}  // namespace atolldb
