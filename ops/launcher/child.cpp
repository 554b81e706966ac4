#include "ops/launcher/child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "shared/base/path_errors.h"
#include "shared/base/try.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

struct ExecPlan {
  const char* program = nullptr;
  std::vector<char*> arguments;
  std::vector<int> inherited;  // file descriptors
  int input_fd = -1;
  int output_fd = -1;
  pid_t parent = 0;
};

/// Runs in the child between fork and exec, so it makes only async-signal-safe calls.
[[noreturn]] void become(const ExecPlan& plan) {
  constexpr int kCannotStart = 127;
  // The child gets its own process group. So only the launcher receives a Ctrl-C of the terminal;
  // it then stops the cluster in order.
  setpgid(0, 0);
  if (!die_with_parent(plan.parent)) _exit(kCannotStart);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(plan.input_fd, 0) < 0 || dup2(plan.output_fd, 1) < 0 || dup2(plan.output_fd, 2) < 0) {
    _exit(kCannotStart);
  }
  // The caller's folder may be unmounted or removed while the cluster runs.
  if (chdir("/") != 0) _exit(kCannotStart);
  // The child inherits no descriptor of the embedding program and no lock of another cluster.
  close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  for (const int fd : plan.inherited) fcntl(fd, F_SETFD, 0);
  execv(plan.program, plan.arguments.data());
  _exit(kCannotStart);
}

std::unexpected<Error> cannot_start(const std::string& program, const char* what) {
  return make_error(ExitCode::failed, program + ": cannot be started: " + what + ": " +
                                          std::strerror(errno) +
                                          ": install all programs of Atoll into one folder");
}

}  // namespace

Result<Child> spawn_child(const std::string& program, const std::string& log_file,
                          const std::string& cluster, Handover handover) {
  if (access(program.c_str(), X_OK) != 0) {
    return std::unexpected(path_error(program, "cannot be run", errno,
                                      "install all programs of Atoll into one folder"));
  }
  ATOLL_ASSIGN(auto channel, make_channel());
  handover.channel_fd = channel.second.get();
  handover.launcher_pid = getpid();
  ATOLL_ASSIGN(const UniqueFd handover_fd, write_handover(handover));
  const UniqueFd input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd output(open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const int log_errno = errno;
  if (!input.is_open()) return cannot_start(program, "/dev/null");
  if (!output.is_open()) {
    return std::unexpected(path_error(log_file, "cannot be opened", log_errno,
                                      "change cluster.log_dir in the config"));
  }

  std::array<std::string, 7> words = {program,
                                      "--role",
                                      handover.role,
                                      "--cluster",
                                      cluster,
                                      "--handover",
                                      std::to_string(handover_fd.get())};
  ExecPlan plan;
  plan.program = program.c_str();
  for (std::string& word : words) plan.arguments.push_back(word.data());
  plan.arguments.push_back(nullptr);
  plan.inherited = {handover.channel_fd, handover.lock_fd, handover_fd.get()};
  for (const int fd : handover.data_lock_fds) plan.inherited.push_back(fd);
  for (const auto& [name, fd] : handover.segments) plan.inherited.push_back(fd);
  plan.input_fd = input.get();
  plan.output_fd = output.get();
  plan.parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return cannot_start(program, "fork");
  if (pid == 0) become(plan);

  Child child;
  child.role = handover.role;
  child.node = handover.node;
  child.log_file = log_file;
  // The child is not reaped yet, so it can be found even if it has ended. Its start time is fixed
  // at fork.
  child.id = find_process(pid).value_or(ProcessId{pid, 0});
  child.channel = std::move(channel.first);
  child.reader.emplace(child.channel.get());
  child.last_seen = Child::Clock::now();
  Result<UniqueFd> pidfd = open_pidfd(pid);
  if (!pidfd) {
    kill(pid, SIGKILL);
    reap(pid);
    return std::unexpected(pidfd.error());
  }
  child.pidfd = *std::move(pidfd);
  return child;
}

}  // namespace atolldb
