#include "ops/launcher/lock_holder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ops/launcher/lock_identity.h"
#include "shared/base/path_errors.h"
#include "shared/base/unique_fd.h"

namespace atolldb {
namespace {

/// Returns whether /proc/locks lists an flock of `pid` on the inode. Returns nothing if the kernel
/// lists no locks at all. A line is like "1: FLOCK  ADVISORY  WRITE 17 fe:00:42 0 EOF". Devices are
/// not compared, because some file systems show another device there than in stat.
std::optional<bool> has_flock(pid_t pid, ino_t inode) {
  std::ifstream locks("/proc/locks");
  bool has_lines = false;
  for (std::string line; std::getline(locks, line);) {
    has_lines = true;
    std::istringstream words(line);
    std::string number, kind, advisory, mode, place;
    pid_t owner = 0;
    if (!(words >> number >> kind >> advisory >> mode >> owner >> place)) continue;
    if (kind != "FLOCK" || owner != pid) continue;
    if (place.substr(place.rfind(':') + 1) == std::to_string(inode)) return true;
  }
  if (!has_lines) return std::nullopt;
  return false;
}

/// Returns whether the process has exactly this file open, or true if this user may not check that.
/// The check is needed because the inode in /proc/locks may belong to a file on another device. The
/// content of the lock file may also be forged.
bool may_have_open(pid_t pid, const struct stat& info) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::directory_iterator entry("/proc/" + std::to_string(pid) + "/fd", error);
       !error && entry != fs::end(entry); entry.increment(error)) {
    struct stat opened{};
    if (stat(entry->path().c_str(), &opened) == 0 && opened.st_dev == info.st_dev &&
        opened.st_ino == info.st_ino) {
      return true;
    }
  }
  return static_cast<bool>(error);
}

/// Replaces the check of /proc/locks if the kernel lists no locks. Returns whether the file is
/// locked and its owner also owns the process.
bool seems_held(int fd, const struct stat& info, pid_t pid) {
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return false;
  struct stat process{};
  const std::string path = "/proc/" + std::to_string(pid);
  return stat(path.c_str(), &process) == 0 && process.st_uid == info.st_uid;
}

/// Returns the content of a lock file. It has a few hundred bytes, and 60 more per process.
std::string read_all(int fd) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  std::string text;
  std::array<char, 4096> part{};
  ssize_t count = 0;
  while (text.size() < kMaxBytes && (count = read(fd, part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<size_t>(count));
  }
  return text;
}

/// Returns the holder that the content names. Returns nothing if the content belongs to another
/// file: a cloned volume has the same inodes, and /proc/locks cannot distinguish them (R49).
std::optional<LockHolder> parse_holder(const std::string& text, const struct stat& file) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!is_of_this_file(json, file)) return {};
  if (!json.contains("launcher") || !json["launcher"].is_object()) return {};
  const auto& launcher = json["launcher"];
  if (!launcher.contains("pid") || !launcher["pid"].is_number_integer()) return {};
  if (!launcher.contains("start_time") || !launcher["start_time"].is_number_unsigned()) return {};
  const auto text_of = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  return LockHolder{{launcher["pid"].get<pid_t>(), launcher["start_time"].get<uint64_t>()},
                    text_of("name"),
                    text_of("run_dir")};
}

}  // namespace

Result<std::optional<LockHolder>> holder_of_lock(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return std::unexpected(path_error(path, "cannot be opened", errno, "choose another cluster"));
  }
  struct stat info{};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  const auto holder = parse_holder(read_all(file.get()), info);
  if (!holder || !is_alive(holder->launcher)) return std::nullopt;
  const auto is_held = has_flock(holder->launcher.pid, info.st_ino);
  const bool counts = is_held ? *is_held : seems_held(file.get(), info, holder->launcher.pid);
  if (!counts || !may_have_open(holder->launcher.pid, info)) return std::nullopt;
  return holder;
}

}  // namespace atolldb
