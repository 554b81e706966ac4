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

constexpr int kCannotRun = 127;  // exit code of shells for a command that cannot be run
constexpr const char* kGuardName = "command-guard";
constexpr std::chrono::milliseconds kKillPeriod{5};

[[noreturn]] void become_command(char* const* arguments, int input, int output, pid_t guard) {
  // Ends with the guard: after the guard was killed, no process could end the command.
  if (!die_with_parent(guard)) _exit(kCannotRun);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 || chdir("/") != 0) {
    _exit(kCannotRun);
  }
  // Closes inherited descriptors on exec, so that the command holds no lock of the cluster (R31).
  close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  execv(arguments[0], arguments);
  _exit(kCannotRun);
}

/// Kills each child of the calling thread. Returns whether there was one. The kernel lists the ids
/// of the children as "12 34 ".
bool kill_children() {
  const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::array<char, 4096> buffer;  // a later call finds the ids that do not fit
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

/// Kills all descendants, then the guard. Children of a killed process become children of the
/// guard, a subreaper. So the rounds reach all descendants, also those that have left the group.
[[noreturn]] void end_command() {
  constexpr auto kRounds = kGuardPatience / kKillPeriod;
  for (auto round = kRounds; round > 0 && kill_children(); --round) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const timespec pause = {0, std::chrono::nanoseconds(kKillPeriod).count()};
    nanosleep(&pause, nullptr);
  }
  kill(0, SIGKILL);  // kills all of the group, and so this process
  _exit(kCannotRun);
}

[[noreturn]] void end_as(int status) {
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  prctl(PR_SET_DUMPABLE, 0);  // no core file: it would have the memory of a cluster process
  signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  kill(getpid(), number);
  _exit(kCannotRun);
}

/// Renames this process in the lists of `ps`.
void name_guard(std::span<char> command_line) {
  const std::string_view name = kGuardName;
  prctl(PR_SET_NAME, kGuardName);
  std::ranges::fill(command_line, '\0');
  std::copy_n(name.begin(), std::min(name.size(), command_line.size()), command_line.begin());
}

}  // namespace

std::span<char> command_line_in_memory() {
  // Skips field 2, the program's name, which may have blanks and parentheses: proc_pid_stat(5).
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
  signal(SIGCHLD, SIG_DFL);  // the exit code would be lost if SIGCHLD were ignored
  // Makes its own group: end_command kills the group of the guard, which must not be the cluster's.
  if (setpgid(0, 0) != 0) _exit(kCannotRun);
  name_guard(command_line);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // If the parent died before this prctl, the kernel sends no signal. So this checks the parent,
  // too.
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent) _exit(kCannotRun);
  const pid_t self = getpid();
  const pid_t command = fork();
  if (command < 0) _exit(kCannotRun);
  if (command == 0) become_command(arguments, input, output, self);
  // Closes all descriptors, so that the guard holds no lock of the cluster (R31), and keeps no pipe
  // open. This comes after the fork, because the command needs some of them.
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
