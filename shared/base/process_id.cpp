#include "shared/base/process_id.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <sstream>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/unique_fd.h"

namespace atolldb {
namespace {

/// Returns the fields of /proc/<pid>/stat from the third ("state") on. The second field is the name
/// in parentheses, which may contain any bytes.
std::vector<std::string> stat_fields(pid_t pid) {
  const std::string text = file_text("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  return {std::istream_iterator<std::string>(rest), std::istream_iterator<std::string>()};
}

constexpr size_t kStateField = 0;      // field 3 of the file
constexpr size_t kFlagsField = 6;      // field 9 of the file
constexpr size_t kUserTimeField = 11;  // field 14 of the file
constexpr size_t kSystemTimeField = 12;
constexpr size_t kStartTimeField = 19;  // field 22 of the file

std::optional<ProcessId> find_in(const std::vector<std::string>& fields, pid_t pid) {
  if (fields.size() <= kStartTimeField) return std::nullopt;
  if (fields[kStateField] == "Z" || fields[kStateField] == "X") return std::nullopt;
  return ProcessId{pid, std::stoull(fields[kStartTimeField])};
}

}  // namespace

std::optional<ProcessId> find_process(pid_t pid) {
  if (pid <= 0) return std::nullopt;
  return find_in(stat_fields(pid), pid);
}

ProcessId this_process() { return find_process(getpid()).value_or(ProcessId{getpid(), 0}); }

bool is_alive(const ProcessId& id) {
  const std::optional<ProcessId> found = find_process(id.pid);
  return found && *found == id;
}

bool is_ending(const ProcessId& id) {
  constexpr uint64_t kExiting = 0x4;  // PF_EXITING of the kernel, which no user header has
  const std::vector<std::string> fields = stat_fields(id.pid);
  return find_in(fields, id.pid) == id && (std::stoull(fields[kFlagsField]) & kExiting) != 0;
}

uint64_t cpu_time_us(pid_t pid) {
  const std::vector<std::string> fields = stat_fields(pid);
  if (fields.size() <= kStartTimeField) return 0;
  const uint64_t ticks =
      std::stoull(fields[kUserTimeField]) + std::stoull(fields[kSystemTimeField]);
  const long ticks_per_second = sysconf(_SC_CLK_TCK);
  CHECK(ticks_per_second > 0);
  return ticks * 1'000'000 / static_cast<uint64_t>(ticks_per_second);
}

Result<UniqueFd> open_pidfd(pid_t pid) {
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd >= 0) return UniqueFd(fd);
  return make_error(ExitCode::resources,
                    "process " + std::to_string(pid) +
                        ": cannot be watched: pidfd_open: " + std::strerror(errno) +
                        ": raise `ulimit -n`; Linux before 5.3 cannot do it");
}

bool send_signal(const UniqueFd& pidfd, int signal) {
  CHECK(pidfd.is_open());
  CHECK(signal > 0 && signal < NSIG);
  return syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0;
}

int reap(pid_t pid) {
  CHECK(pid > 0);  // for other values, waitpid waits for any of several children
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string signal_name(int signal) {
  CHECK(signal > 0);
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

std::string describe_exit(int wait_status) {
  if (WIFSIGNALED(wait_status)) return "was killed by " + signal_name(WTERMSIG(wait_status));
  CHECK(WIFEXITED(wait_status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace atolldb
