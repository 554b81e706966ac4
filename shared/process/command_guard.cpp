#include "shared/process/command_guard.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "shared/process/start_up.h"

namespace atolldb {
namespace {

constexpr int kCannotRun = 127;  // as shells say it
constexpr const char* kGuardName = "command-guard";
constexpr std::chrono::milliseconds kKillPeriod{5};

[[noreturn]] void become_command(char* const* arguments, int input, int output, pid_t guard) {
  // A guard that is killed cannot end the command any more.
  if (!die_with_parent(guard)) _exit(kCannotRun);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 || chdir("/") != 0) {
    _exit(kCannotRun);
  }
  // No lock of the cluster leaks into the command (R31).
  close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  execv(arguments[0], arguments);
  _exit(kCannotRun);
}

/// Kills each child of the calling thread. Returns whether there was one. The kernel lists them as
/// "12 34 ".
bool kill_children() {
  const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::array<char, 4096> buffer;  // what does not fit is found by the next call
  const ssize_t count = read(fd, buffer.data(), buffer.size());
  close(fd);
  bool has_any = false;
  pid_t pid = 0;
  for (const char c : std::string_view(buffer.data(), count > 0 ? static_cast<size_t>(count) : 0)) {
    if (c >= '0' && c <= '9') {
      pid = pid * 10 + (c - '0');
      continue;
    }
    if (pid > 1) has_any = kill(pid, SIGKILL) == 0 || has_any;
    pid = 0;
  }
  return has_any;
}

/// The children of a killed process become children of the guard, which is their subreaper. So all
/// descendants are reached after some rounds, also those that have left the group.
[[noreturn]] void end_command() {
  constexpr auto kRounds = kGuardPatience / kKillPeriod;
  for (auto round = kRounds; round > 0 && kill_children(); --round) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const timespec pause = {0, std::chrono::nanoseconds(kKillPeriod).count()};
    nanosleep(&pause, nullptr);
  }
  kill(0, SIGKILL);  // the whole group, and the guard with it
  _exit(kCannotRun);
}

[[noreturn]] void end_as(int status) {
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  prctl(PR_SET_DUMPABLE, 0);  // a core of the guard would be one of the cluster's process
  signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  kill(getpid(), number);
  _exit(kCannotRun);
}

/// Names the guard where `ps` looks for a name.
void name_guard(std::span<char> command_line) {
  const std::string_view name = kGuardName;
  prctl(PR_SET_NAME, kGuardName);
  std::ranges::fill(command_line, '\0');
  std::copy_n(name.begin(), std::min(name.size(), command_line.size()), command_line.begin());
}

}  // namespace

std::span<char> command_line_in_memory() {
  // proc_pid_stat(5): field 2, the name of the program, may have blanks and parentheses.
  constexpr size_t kFieldOfBegin = 48;
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::string_view rest = std::string_view(text).substr(name_end + 1);
  std::array<uintptr_t, 2> bounds = {};
  for (size_t field = 2; field <= kFieldOfBegin + 1; ++field) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (field >= kFieldOfBegin) {
      uintptr_t& bound = bounds[field - kFieldOfBegin];
      if (std::from_chars(rest.data(), rest.data() + end, bound).ec != std::errc{}) return {};
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (bounds[0] == 0 || bounds[1] <= bounds[0]) return {};
  return {reinterpret_cast<char*>(bounds[0]), bounds[1] - bounds[0]};
}

void guard_command(char* const* arguments, int input, int output, pid_t parent,
                   std::span<char> command_line) {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGTERM);
  sigaddset(&awaited, SIGCHLD);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  signal(SIGCHLD, SIG_DFL);  // an ignored one would lose the exit code
  // In the group of the cluster, the guard would kill the cluster.
  if (setpgid(0, 0) != 0) _exit(kCannotRun);
  name_guard(command_line);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // The parent may have died before the first call. Then the kernel never sends the signal.
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent) _exit(kCannotRun);
  const pid_t self = getpid();
  const pid_t command = fork();
  if (command < 0) _exit(kCannotRun);
  if (command == 0) become_command(arguments, input, output, self);
  // The guard holds no lock of the cluster (R31), and keeps no pipe open. Not earlier: the command
  // needs these descriptors.
  close_range(0, ~0u, 0);
  for (;;) {
    if (sigwaitinfo(&awaited, nullptr) == SIGTERM) end_command();
    int status = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == command) end_as(status);
    }
  }
}

}  // namespace atolldb
