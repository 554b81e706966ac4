#include "ops/launcher/run_folder.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "shared/memory/pointer.h"
#include "shared/process/run_paths.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view kIpc = "ipc://";

Json process_json(const ProcessId& id) { return {{"pid", id.pid}, {"start_time", id.start_time}}; }

std::optional<ProcessId> process_of(const Json& json) {
  if (!json.is_object() || !json.contains("pid") || !json.contains("start_time")) return {};
  if (!json["pid"].is_number_integer() || !json["start_time"].is_number_unsigned()) return {};
  return ProcessId{json["pid"].get<pid_t>(), json["start_time"].get<uint64_t>()};
}

/// The content of the lock file; null when it is empty or unreadable.
Json read_lock_file(const std::string& path) {
  std::ifstream file(path);
  Json json = Json::parse(file, nullptr, false);
  return json.is_object() ? json : Json();
}

std::vector<ProcessId> children_of(const Json& lock) {
  std::vector<ProcessId> children;
  if (!lock.is_object() || !lock.contains("children")) return children;
  for (const Json& child : lock["children"]) {
    if (const auto id = process_of(child)) children.push_back(*id);
  }
  return children;
}

std::unexpected<Error> folder_error(const std::string& path, const char* what) {
  return make_error(ExitCode::failed, path + ": " + what + ": " + std::strerror(errno) +
                                          ": change cluster.run_dir in the config");
}

/// Processes of a cluster whose launcher has died die with it; this only makes sure (R31).
void end_orphans(const Json& lock) {
  for (const ProcessId& child : children_of(lock)) {
    if (!is_alive(child)) continue;
    const Result<UniqueFd> pidfd = open_pidfd(child.pid);
    // Opened, so the number stays that process's; alive still, so it is the one that was meant.
    if (!pidfd || !is_alive(child)) continue;
    send_signal(*pidfd, SIGKILL);
    constexpr int kPatienceMs = 5000;
    pollfd ended{pidfd->get(), POLLIN, 0};
    poll(&ended, 1, kPatienceMs);
  }
}

/// Locks the file at `path`; an open descriptor, or an invalid one when somebody else has it.
Result<UniqueFd> try_lock(const std::string& path) {
  while (true) {
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd.is_open()) return folder_error(path, "cannot be opened");
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return UniqueFd();
    // Its last owner may have removed the file between our open and our lock.
    struct stat locked{};
    struct stat named{};
    if (fstat(fd.get(), &locked) == 0 && stat(path.c_str(), &named) == 0 &&
        locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
      return fd;
    }
  }
}

Result<UniqueFd> lock_folder(const Config& config) {
  const std::string path = lock_path(config);
  constexpr std::chrono::milliseconds kPatience{5000};
  constexpr std::chrono::milliseconds kPause{10};
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    Result<UniqueFd> fd = try_lock(path);
    if (!fd || fd->is_open()) return fd;
    const Json lock = read_lock_file(path);
    const auto launcher =
        lock.is_object() ? process_of(lock.value("launcher", Json())) : std::nullopt;
    if (launcher && is_alive(*launcher)) {
      return make_error(ExitCode::already_running,
                        "cluster \"" + lock.value("name", config.cluster.name) +
                            "\": runs already, with pid " + std::to_string(launcher->pid) +
                            ": `atoll status` shows it, `atoll down` stops it");
    }
    end_orphans(lock);
    if (std::chrono::steady_clock::now() > give_up) {
      return make_error(ExitCode::already_running, path +
                                                       ": is locked by a process that is no "
                                                       "launcher: `fuser -v` on it tells which");
    }
    std::this_thread::sleep_for(kPause);  // dying processes have no event to wait for
  }
}

}  // namespace

Result<RunFolder> RunFolder::acquire(const Config& config) {
  const std::string& folder = config.cluster.run_dir;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    errno = error.value();
    return folder_error(folder, "cannot be made");
  }
  if (chmod(folder.c_str(), 0700) != 0) return folder_error(folder, "is not ours");
  Result<UniqueFd> lock = lock_folder(config);
  if (!lock) return std::unexpected(lock.error());
  RunFolder run_folder(config, *std::move(lock));
  const Json previous = read_lock_file(lock_path(config));
  if (previous.is_object()) {
    end_orphans(previous);
    const auto launcher = process_of(previous.value("launcher", Json()));
    run_folder.leftovers_ =
        "removed what a dead cluster left in " + folder +
        (launcher ? " (its launcher was pid " + std::to_string(launcher->pid) + ")"
                  : std::string());
  }
  run_folder.remove_files();
  const auto written = run_folder.write_processes({});
  if (!written) return std::unexpected(written.error());
  return run_folder;
}

RunFolder::~RunFolder() {
  if (!lock_.is_open()) return;
  remove_files();
  unlink(lock_path(config_).c_str());  // under the lock: whoever waits for it notices
  rmdir(config_.cluster.run_dir.c_str());
}

void RunFolder::remove_files() {
  unlink(endpoints_path(config_).c_str());
  unlink(running_config_path(config_).c_str());
  unlink(prometheus_targets_path(config_).c_str());
  for (uint32_t node = 0; node < kMaxNodes; ++node) {
    unlink(node_socket_path(config_, node).c_str());
    unlink(session_socket_path(config_.cluster.run_dir, node).c_str());
  }
  const std::string& endpoint = config_.control.endpoint;
  if (endpoint.starts_with(kIpc)) unlink(endpoint.c_str() + kIpc.size());
}

Result<void> RunFolder::write_processes(const std::vector<ProcessId>& children) {
  Json json = {{"name", config_.cluster.name},
               {"launcher", process_json(this_process())},
               {"children", Json::array()}};
  for (const ProcessId& child : children) json["children"].push_back(process_json(child));
  const std::string text = json.dump() + "\n";
  // In place: the lock belongs to this file, not to its name.
  if (pwrite(lock_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ftruncate(lock_.get(), static_cast<off_t>(text.size())) != 0) {
    return folder_error(lock_path(config_), "cannot be written");
  }
  return {};
}

Result<void> RunFolder::write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << text;
    if (!file.flush()) return folder_error(temporary, "cannot be written");
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return folder_error(path, "cannot be written");
  return {};
}

std::optional<ProcessId> running_launcher(const Config& config) {
  const Json lock = read_lock_file(lock_path(config));
  const auto launcher =
      lock.is_object() ? process_of(lock.value("launcher", Json())) : std::nullopt;
  return launcher && is_alive(*launcher) ? launcher : std::nullopt;
}

}  // namespace atolldb
