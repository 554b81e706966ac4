#include "shared/process/shell_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/process_id.h"
#include "shared/base/unique_fd.h"
#include "shared/config/config_values.h"
#include "shared/process/command_guard.h"
#include "shared/process/output_tail.h"

namespace atolldb {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kCancelPeriod{50};

/// The read end of the pipe to which a command writes.
class CommandOutput {
 public:
  explicit CommandOutput(UniqueFd fd) : fd_(std::move(fd)) { CHECK(fd_.is_open()); }

  /// Returns the descriptor, or -1 after the end of the output. poll ignores -1.
  int fd() const { return fd_.get(); }
  /// Reads the available output, at most kAtOnce bytes: a command may write faster than this reads.
  void take() {
    constexpr size_t kAtOnce = 1 << 20;
    std::array<char, 16384> buffer;
    for (size_t taken = 0; fd_.is_open() && taken < kAtOnce;) {
      const ssize_t count = read(fd_.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) return fd_.reset();
      tail_.add({buffer.data(), static_cast<size_t>(count)});
      taken += static_cast<size_t>(count);
    }
  }
  std::string text() const {
    const std::string text = tail_.text();
    return text.empty() ? "" : fmt::format(", and wrote: {}", text);
  }

 private:
  UniqueFd fd_;
  OutputTail tail_;
};

/// Returns whether the process has ended before `until`.
bool await_end(const UniqueFd& pidfd, CommandOutput& output, Clock::time_point until,
               const std::function<bool()>& is_cancelled) {
  CHECK(pidfd.is_open());
  while (!is_cancelled || !is_cancelled()) {
    // Rounded up, so that the loop does not end before `until`.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> events = {pollfd{pidfd.get(), POLLIN, 0}, pollfd{output.fd(), POLLIN, 0}};
    const auto wait = static_cast<int>(std::min(left, kCancelPeriod).count());
    const int ready = poll(events.data(), events.size(), std::max(wait, 1));
    if (ready <= 0) continue;
    if (events[1].revents != 0) output.take();
    if (events[0].revents != 0) return true;
  }
  return false;
}

/// Asks the guard to kill the command. Kills the guard's group if the guard does not end in time.
void end_guard(pid_t guard, const UniqueFd& pidfd, CommandOutput& output) {
  kill(guard, SIGTERM);
  static_cast<void>(await_end(pidfd, output, Clock::now() + 2 * kGuardPatience, {}));
  kill(-guard, SIGKILL);
}

/// Kills the rest of the guard's process group if a signal has ended the guard. The guard may then
/// have died before it ended the command. REQUIRES: the guard has ended, but is not reaped. Until
/// it is reaped, no other group gets its id.
void end_left_group(pid_t guard) {
  siginfo_t ended = {};
  const int found = waitid(P_PID, static_cast<id_t>(guard), &ended, WEXITED | WNOWAIT);
  if (found == 0 && ended.si_code == CLD_EXITED) return;
  kill(-guard, SIGKILL);
}

std::unexpected<Error> cannot(const char* what, const char* why) {
  return make_error(ExitCode::failed, fmt::format("{}: {}: {}", what, why, std::strerror(errno)));
}

}  // namespace

Result<void> run_shell_command(const std::string& command, std::chrono::milliseconds timeout,
                               const std::function<bool()>& is_cancelled) {
  CHECK(!command.empty() && timeout.count() > 0);
  std::array<std::string, 3> words = {"/bin/sh", "-c", command};
  const std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(),
                                          nullptr};
  const UniqueFd input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input.is_open()) return cannot("/dev/null", "cannot be opened");
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return cannot("a pipe", "cannot be made");
  UniqueFd write_end(ends[1]);
  CommandOutput output{UniqueFd(ends[0])};
  if (fcntl(output.fd(), F_SETFL, O_NONBLOCK) != 0) return cannot("a pipe", "cannot be set up");
  const auto until = Clock::now() + timeout;
  const std::span<char> command_line = command_line_in_memory();
  const pid_t parent = getpid();
  const pid_t guard = fork();
  if (guard < 0) return cannot("/bin/sh", "cannot be started");
  if (guard == 0) {
    guard_command(arguments.data(), input.get(), write_end.get(), parent, command_line);
  }
  write_end.reset();
  // The guard does the same. So the group exists before this kills it, whichever call is first.
  setpgid(guard, guard);
  const Result<UniqueFd> pidfd = open_pidfd(guard);
  const bool has_ended = pidfd && await_end(*pidfd, output, until, is_cancelled);
  if (has_ended) {
    end_left_group(guard);
  } else if (pidfd) {
    end_guard(guard, *pidfd, output);
  } else {
    kill(-guard, SIGKILL);
  }
  const int status = reap(guard);
  output.take();
  if (!pidfd) return std::unexpected(pidfd.error());
  if (has_ended && status == 0) return {};
  if (has_ended) {
    return make_error(ExitCode::failed, "the command " + describe_exit(status) + output.text());
  }
  if (Clock::now() < until) {
    return make_error(ExitCode::not_running, "the command was killed, because the cluster stops");
  }
  return make_error(
      ExitCode::failed,
      fmt::format("the command was killed after {}{}",
                  format_duration_us(std::chrono::microseconds(timeout).count()), output.text()));
}

std::string quote_for_shell(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./-,+@:=").contains(c);
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return text;
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace atolldb
