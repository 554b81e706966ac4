#include "ops/launcher/background.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "shared/base/path_errors.h"
#include "shared/base/try.h"
#include "shared/process/line_channel.h"
#include "shared/process/run_paths.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

/// Prefix of the line that tells the waiting command which snapshot can be read during the
/// recovery.
constexpr std::string_view kRecovering = "recovering ";
/// Prefix of a StartReport as JSON.
constexpr std::string_view kProgress = "progress ";
constexpr unsigned kFirstInherited = 3;

/// Closes all descriptors above 2 except `kept`. The background process keeps only its end of the
/// channel.
void close_all_but(int kept) {
  const auto number = static_cast<unsigned>(kept);
  if (number > kFirstInherited) close_range(kFirstInherited, number - 1, 0);
  close_range(number + 1, ~0U, 0);
}

/// Sends the report only if the other side has read all previous ones. Unread reports must not fill
/// the channel, which the last line of the start-up needs.
void send_progress(int channel, const StartReport& report) {
  int unread = 0;
  if (ioctl(channel, SIOCOUTQ, &unread) != 0 || unread != 0) return;
  send_line(channel, std::string(kProgress) + to_json_line(report));
}

/// Makes the log folder. The launcher's log needs this folder before all other files exist.
Result<void> make_log_dir(const Config& config) {
  std::error_code error;
  std::filesystem::create_directories(config.cluster.log_dir, error);
  if (!error) return {};
  return std::unexpected(path_error(config.cluster.log_dir, "cannot be made", error.value(),
                                    "change cluster.log_dir in the config"));
}

/// Detaches from the terminal and the standard streams.
Result<void> become_daemon(const std::string& log_file) {
  setsid();
  signal(SIGHUP, SIG_IGN);
  const UniqueFd input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd output(open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!output.is_open() || dup2(input.get(), 0) < 0 || dup2(output.get(), 1) < 0 ||
      dup2(output.get(), 2) < 0) {
    return std::unexpected(
        path_error(log_file, "cannot be opened", errno, "change cluster.log_dir in the config"));
  }
  return {};
}

/// Main function of the background process.
[[noreturn]] void run_launcher(const Config& config, LaunchOptions options, int channel) {
  const auto report = [&](const Error& error) {
    send_line(channel, std::to_string(static_cast<int>(error.code)) + " " + error.message);
    std::_Exit(static_cast<int>(error.code));
  };
  close_all_but(channel);
  if (chdir("/") != 0) report(path_error("/", "cannot be entered", errno, "check the system"));
  if (const auto daemon = become_daemon(log_path(config, "launcher")); !daemon) {
    report(daemon.error());
  }
  const Result<UniqueFd> signals = receive_signals({SIGINT, SIGTERM});
  if (!signals) report(signals.error());
  options.signal_fd = signals->get();
  options.waiting_fd = channel;
  bool is_answered = false;
  options.on_recovering = [&,
                           until_readable = options.until_readable](const std::string& readable) {
    is_answered = until_readable && !readable.empty();
    send_line(channel, std::string(kRecovering) + readable);
  };
  options.on_progress = [&](const StartReport& step) { send_progress(channel, step); };
  const Logger logger = make_stderr_logger("launcher", config.log.level);
  int code = 0;
  {
    Launcher launcher(config, std::move(options), logger);
    const Result<void> started = launcher.start();
    // If the command has returned because snapshots can be read, the error is not reported to it.
    // The failure then counts as a failure of a running cluster.
    if (!started && !is_answered) report(started.error());
    if (!send_line(channel, "running") && !is_answered) launcher.request_stop(true);
    close(channel);
    const auto ended = launcher.supervise(started);
    if (!ended) code = static_cast<int>(ended.error().code);
  }
  logger->flush();
  std::_Exit(code);
}

}  // namespace

void leave_caller() {
  close_range(kFirstInherited, ~0U, 0);
  // The command continues even if this call fails.
  [[maybe_unused]] const int left = chdir("/");
}

Result<void> run_foreground(const Config& config, const std::function<void()>& on_running,
                            LaunchOptions options) {
  ATOLL_ASSIGN(const UniqueFd signals, receive_signals({SIGINT, SIGTERM}));
  options.signal_fd = signals.get();
  options.notifies_service_manager = true;
  ATOLL_TRY(make_log_dir(config));
  ATOLL_ASSIGN(const Logger logger,
               make_file_logger("launcher", log_path(config, "launcher"), config.log.level));
  Launcher launcher(config, std::move(options), logger);
  ATOLL_TRY(launcher.start());
  if (on_running) on_running();
  return launcher.supervise();
}

Result<void> start_background(const Config& config, LaunchOptions options) {
  ATOLL_ASSIGN(auto channel, make_channel());
  ATOLL_TRY(make_log_dir(config));
  // The folder must be absolute, because the launcher leaves the working directory.
  std::error_code error;
  if (const auto folder = std::filesystem::absolute(options.binary_dir, error); !error) {
    options.binary_dir = folder.string();
  }
  const pid_t pid = fork();
  if (pid < 0) {
    return make_error(ExitCode::resources, std::string("launcher: fork: ") + std::strerror(errno) +
                                               ": free memory, or raise `ulimit -u`");
  }
  if (pid == 0) {
    channel.first.reset();
    run_launcher(config, std::move(options), channel.second.get());
  }
  channel.second.reset();
  LineReader reader(channel.first.get());
  while (!reader.is_closed()) {
    pollfd readable{channel.first.get(), POLLIN, 0};
    poll(&readable, 1, -1);
    for (const std::string& line : reader.read()) {
      if (line == "running") return {};
      if (line.starts_with(kProgress)) {
        const auto progress = parse_start_report(line.substr(kProgress.size()));
        if (progress && options.on_progress) options.on_progress(*progress);
        continue;
      }
      if (line.starts_with(kRecovering)) {
        const std::string snapshot = line.substr(kRecovering.size());
        if (options.on_recovering) options.on_recovering(snapshot);
        if (options.until_readable && !snapshot.empty()) return {};
        continue;
      }
      reap(pid);
      const size_t space = line.find(' ');
      const int code = std::atoi(line.c_str());
      return make_error(code == 0 ? ExitCode::failed : static_cast<ExitCode>(code),
                        line.substr(space + 1));
    }
  }
  return make_error(ExitCode::failed, "launcher (pid " + std::to_string(pid) + ") " +
                                          describe_exit(reap(pid)) + ": see " +
                                          log_path(config, "launcher"));
}

}  // namespace atolldb
