#include "ops/launcher/process_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

namespace atolldb {
namespace {

using Json = nlohmann::json;

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

std::unexpected<Error> lock_error(const std::string& path, const char* what,
                                  const std::string& key) {
  return make_error(ExitCode::failed, path + ": " + what + ": " + std::strerror(errno) +
                                          ": change " + key + " in the config");
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
Result<UniqueFd> try_lock(const std::string& path, const std::string& key) {
  while (true) {
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd.is_open()) return lock_error(path, "cannot be opened", key);
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

std::optional<ProcessId> launcher_of(const Json& lock) {
  return lock.is_object() ? process_of(lock.value("launcher", Json())) : std::nullopt;
}

Result<UniqueFd> wait_for_lock(const std::string& path, const std::string& cluster,
                               const std::string& key) {
  constexpr std::chrono::milliseconds kPatience{5000};
  constexpr std::chrono::milliseconds kPause{10};
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    Result<UniqueFd> fd = try_lock(path, key);
    if (!fd || fd->is_open()) return fd;
    const Json lock = read_lock_file(path);
    const auto launcher = launcher_of(lock);
    if (launcher && is_alive(*launcher)) {
      const std::string owner = lock.value("name", cluster);
      const std::string what =
          "cluster \"" + owner + "\": runs already, with pid " + std::to_string(launcher->pid);
      if (owner != cluster) {
        return make_error(ExitCode::already_running,
                          what + ", in the same " + key + ": give each cluster its own");
      }
      return make_error(ExitCode::already_running,
                        what + ": `atoll status` shows it, `atoll down` stops it");
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

Result<ProcessLock> ProcessLock::acquire(const std::string& path, const std::string& cluster,
                                         const std::string& key) {
  Result<UniqueFd> fd = wait_for_lock(path, cluster, key);
  if (!fd) return std::unexpected(fd.error());
  ProcessLock lock(path, cluster, key, *std::move(fd));
  const Json previous = read_lock_file(path);
  if (previous.is_object()) {
    end_orphans(previous);
    lock.was_left_ = true;
    lock.previous_launcher_ = launcher_of(previous);
  }
  const auto written = lock.write_processes({});
  if (!written) return std::unexpected(written.error());
  return lock;
}

Result<void> ProcessLock::write_processes(const std::vector<ProcessId>& children) {
  Json json = {
      {"name", cluster_}, {"launcher", process_json(this_process())}, {"children", Json::array()}};
  for (const ProcessId& child : children) json["children"].push_back(process_json(child));
  const std::string text = json.dump() + "\n";
  // In place: the lock belongs to this file, not to its name.
  if (pwrite(fd_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ftruncate(fd_.get(), static_cast<off_t>(text.size())) != 0) {
    return lock_error(path_, "cannot be written", key_);
  }
  return {};
}

void ProcessLock::forget_processes() {
  // If it fails, the next owner looks for processes that there are not.
  [[maybe_unused]] const int emptied = ftruncate(fd_.get(), 0);
}

std::optional<ProcessId> launcher_of_lock(const std::string& path) {
  const auto launcher = launcher_of(read_lock_file(path));
  return launcher && is_alive(*launcher) ? launcher : std::nullopt;
}

}  // namespace atolldb
