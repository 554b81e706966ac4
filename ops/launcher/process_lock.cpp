#include "ops/launcher/process_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "ops/launcher/lock_identity.h"
#include "shared/base/path_errors.h"
#include "shared/base/try.h"
#include "shared/base/unique_fd.h"
#include "shared/process/run_paths.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;

Json process_json(const ProcessId& id) { return {{"pid", id.pid}, {"start_time", id.start_time}}; }

std::optional<ProcessId> process_of(const Json& json) {
  if (!json.is_object() || !json.contains("pid") || !json.contains("start_time")) return {};
  if (!json["pid"].is_number_integer() || !json["start_time"].is_number_unsigned()) return {};
  return ProcessId{json["pid"].get<pid_t>(), json["start_time"].get<uint64_t>()};
}

struct LockFile {
  Json content;                  // null if the file is empty or unreadable
  bool is_of_this_file = false;  // the file is not a copy, and is of this boot and pid namespace
  bool is_genuine = false;       // is_of_this_file, and this user owns the file
};

/// Reads through one descriptor, so that content and identity belong to one file.
LockFile read_lock_file(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (!fd.is_open() || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  constexpr off_t kMaxBytes = off_t{1} << 20;
  std::string text(static_cast<size_t>(std::min(info.st_size, kMaxBytes)), '\0');
  const ssize_t count = uninterrupted([&] { return pread(fd.get(), text.data(), text.size(), 0); });
  if (count < 0) return {};
  text.resize(static_cast<size_t>(count));
  LockFile file;
  file.content = Json::parse(text, nullptr, false);
  if (!file.content.is_object()) file.content = Json();
  file.is_of_this_file = is_of_this_file(file.content, info);
  file.is_genuine = file.is_of_this_file && info.st_uid == geteuid();
  return file;
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
  return std::unexpected(path_error(path, what, errno, "change " + key + " in the config"));
}

std::optional<ProcessId> launcher_of(const Json& lock) {
  return lock.is_object() ? process_of(lock.value("launcher", Json())) : std::nullopt;
}

/// Kills processes of a cluster whose launcher has died. The kernel also kills them with the
/// launcher; this call makes sure of it (R31). Signals no process if the file is not this cluster's
/// own or its launcher is alive (R49).
void end_orphans(const LockFile& lock) {
  const auto launcher = launcher_of(lock.content);
  if (!lock.is_genuine || !launcher || is_alive(*launcher)) return;
  for (const ProcessId& child : children_of(lock.content)) {
    if (!is_alive(child)) continue;
    const Result<UniqueFd> pidfd = open_pidfd(child.pid);
    // A pidfd always refers to the same process. The check of the listed process (pid and start
    // time) follows the open, so the pidfd refers to that process.
    if (!pidfd || !is_alive(child)) continue;
    send_signal(*pidfd, SIGKILL);
    constexpr int kPatienceMs = 5000;
    pollfd ended{pidfd->get(), POLLIN, 0};
    poll(&ended, 1, kPatienceMs);
  }
}

/// Returns false while another process has the lock of the file.
Result<bool> try_lock_file(const std::string& path, const std::string& key, UniqueFd& fd) {
  while (true) {
    // Refuses a link. It could lead to the lock of another cluster or to any other file, which
    // would be overwritten.
    fd = UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.is_open()) {
      return lock_error(path, errno == ELOOP ? "is a link" : "cannot be opened", key);
    }
    if (uninterrupted([&] { return flock(fd.get(), LOCK_EX | LOCK_NB); }) != 0) {
      // Any other error means that no process has the lock. For example, some network file systems
      // do not support locks.
      if (errno != EWOULDBLOCK) return lock_error(path, "cannot be locked", key);
      return false;
    }
    // The last owner may have removed the file between the open and the lock.
    struct stat locked{};
    struct stat named{};
    if (fstat(fd.get(), &locked) == 0 && stat(path.c_str(), &named) == 0 &&
        locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
      return true;
    }
  }
}

/// Returns false while another process has the lock of the directory. Some network file systems
/// cannot lock directories: then `fd` stays closed, and only the lock file counts.
Result<bool> try_lock_directory(const std::string& directory, const std::string& key,
                                UniqueFd& fd) {
  fd = UniqueFd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return lock_error(directory, "cannot be opened", key);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK || errno == EINTR) return false;
  constexpr std::array kUnsupported = {ENOLCK, EOPNOTSUPP, EINVAL, EBADF};
  if (std::ranges::count(kUnsupported, errno) == 0) {
    return lock_error(directory, "cannot be locked", key);
  }
  fd = UniqueFd();
  return true;
}

/// Overwrites the file in place, because the lock belongs to this file, not to its name. Line feeds
/// after the text keep the blocks of the file allocated. So a later start-up can write to the file
/// on a full disk (R54).
bool overwrite(int fd, std::string text) {
  constexpr size_t kBlockBytes = 4096;
  struct stat info{};
  if (fstat(fd, &info) != 0) return false;
  const size_t blocks = text.size() / kBlockBytes + 1;  // leaves room for at least one line feed
  text.resize(std::max(blocks * kBlockBytes, static_cast<size_t>(info.st_size)), '\n');
  const ssize_t count = uninterrupted([&] { return pwrite(fd, text.data(), text.size(), 0); });
  return count == static_cast<ssize_t>(text.size());
}

std::string ending_text(const std::string& cluster, pid_t launcher) {
  return "cluster \"" + cluster + "\": its launcher, pid " + std::to_string(launcher) +
         ", was killed, and the kernel still frees its memory: try again in a few seconds";
}

/// Calls `try_lock` until it returns true. Processes of a dead cluster may hold the lock until the
/// kernel has ended them, also the launcher. Returns code already_running if the lock file at
/// `path` names a live holder, or if the wait takes too long. `unnamed`: message of the second
/// error, if the launcher has ended.
Result<void> wait_for_lock(const std::string& path, const std::string& cluster,
                           const std::string& key, const std::string& unnamed,
                           const std::function<Result<bool>()>& try_lock) {
  constexpr std::chrono::milliseconds kPatience{5000};
  constexpr std::chrono::milliseconds kPause{10};
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    ATOLL_ASSIGN(const bool is_locked, try_lock());
    if (is_locked) return {};
    const LockFile lock = read_lock_file(path);
    const auto launcher = launcher_of(lock.content);
    const bool is_named = lock.is_of_this_file && launcher;
    const bool is_launcher_ending = is_named && is_ending(*launcher);
    if (is_named && !is_launcher_ending && is_alive(*launcher)) {
      const Json name = lock.content.value("name", Json());
      const std::string owner = name.is_string() ? name.get<std::string>() : cluster;
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
      return make_error(ExitCode::already_running,
                        is_launcher_ending ? ending_text(cluster, launcher->pid) : unnamed);
    }
    std::this_thread::sleep_for(
        kPause);  // no event tells when dying processes have released the lock
  }
}

}  // namespace

Result<ProcessLock> ProcessLock::acquire(const std::string& path, const std::string& cluster,
                                         const std::string& key) {
  UniqueFd fd;
  ATOLL_TRY(wait_for_lock(
      path, cluster, key,
      path +
          ": is locked by a process that is not a launcher: find it with `fuser -v`, and stop it",
      [&] { return try_lock_file(path, key, fd); }));
  ProcessLock lock(path, cluster, key, std::move(fd));
  const LockFile previous = read_lock_file(path);
  if (previous.content.is_object()) {
    end_orphans(previous);
    lock.was_left_ = true;
    // A copy is ignored: it may name a launcher that is alive and holds the lock of the original.
    if (previous.is_genuine) lock.previous_launcher_ = launcher_of(previous.content);
  }
  ATOLL_TRY(lock.write_processes({}));
  return lock;
}

Result<ProcessLock> ProcessLock::acquire_directory(const std::string& directory,
                                                   const std::string& cluster,
                                                   const std::string& key) {
  const std::string path = directory_lock_path(directory);
  UniqueFd fd;
  ATOLL_TRY(wait_for_lock(path, cluster, key,
                          directory + ": is locked by a live cluster or tool that " + path +
                              " does not name: find it with `fuser -v` and stop it, or change " +
                              key + " in the config",
                          [&] { return try_lock_directory(directory, key, fd); }));
  Result<ProcessLock> lock = acquire(path, cluster, key);
  if (lock) lock->directory_fd_ = std::move(fd);
  return lock;
}

bool ProcessLock::is_in_place() const {
  struct stat locked{};
  struct stat named{};
  return fstat(fd_.get(), &locked) == 0 && lstat(path_.c_str(), &named) == 0 &&
         locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
}

Result<void> ProcessLock::write_processes(const std::vector<ProcessId>& children) {
  struct stat info{};
  if (fstat(fd_.get(), &info) != 0) return lock_error(path_, "cannot be examined", key_);
  Json json = {{"name", cluster_},
               {"identity", lock_identity(info)},
               {"launcher", process_json(this_process())},
               {"children", Json::array()}};
  for (const ProcessId& child : children) json["children"].push_back(process_json(child));
  if (!run_dir_.empty()) json["run_dir"] = run_dir_;
  if (!overwrite(fd_.get(), json.dump())) return lock_error(path_, "cannot be written", key_);
  return {};
}

void ProcessLock::forget_processes() {
  // If the write fails, the next owner only looks for processes that have ended already.
  [[maybe_unused]] const bool emptied = overwrite(fd_.get(), "");
}

std::optional<ProcessId> launcher_of_lock(const std::string& path) {
  const LockFile lock = read_lock_file(path);
  if (!lock.is_genuine) return std::nullopt;
  const auto launcher = launcher_of(lock.content);
  return launcher && is_alive(*launcher) ? launcher : std::nullopt;
}

}  // namespace atolldb
