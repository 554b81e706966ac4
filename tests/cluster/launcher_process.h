// Runs `atoll up --foreground` as a child process of a test.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/launcher/background.h"
#include "shared/base/process_id.h"
#include "shared/process/line_channel.h"
#include "shared/process/run_paths.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb::test {

/// Runs `atoll up --foreground` in its own process.
class LauncherProcess {
 public:
  explicit LauncherProcess(const Config& config, bool discards_data = false,
                           RestartLimits restarts = {}) {
    auto channel = make_channel();
    pid_ = fork();
    if (pid_ == 0) {
      const auto ended = run_foreground(
          config, [&] { send_line(channel->second.get(), "running"); },
          {.binary_dir = ATOLL_BIN_DIR, .discards_data = discards_data, .restarts = restarts});
      if (!ended) send_line(channel->second.get(), ended.error().message);
      _exit(ended ? 0 : static_cast<int>(ended.error().code));
    }
    channel_ = std::move(channel->first);
  }
  ~LauncherProcess() {
    if (status_) return;
    kill(pid_, SIGKILL);
    wait();
  }

  pid_t pid() const { return pid_; }
  bool has_ended() {
    int status = 0;
    if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_.has_value();
  }
  int wait() {
    if (!status_) status_ = reap(pid_);
    return *status_;
  }
  /// Returns the next line of its output, or an empty text if it has ended.
  std::string next_line() {
    while (lines_.empty()) {
      pollfd readable{channel_.get(), POLLIN, 0};
      poll(&readable, 1, 10);
      const bool is_all = has_ended();  // asked before the read: no output follows the end
      for (std::string& line : reader().read()) lines_.push_back(std::move(line));
      if (lines_.empty() && is_all) return "";
    }
    std::string line = lines_.front();
    lines_.erase(lines_.begin());
    return line;
  }

 private:
  LineReader& reader() {
    if (!reader_) reader_.emplace(channel_.get());
    return *reader_;
  }
  pid_t pid_ = 0;
  UniqueFd channel_;
  std::optional<LineReader> reader_;
  std::vector<std::string> lines_;
  std::optional<int> status_;
};

inline std::string last_failure(const Config& config) {
  const auto json = nlohmann::json::parse(read_text(last_failure_path(config)), nullptr, false);
  return json.is_object() ? json.value("message", "") : "";
}

}  // namespace atolldb::test
