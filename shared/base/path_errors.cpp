#include "shared/base/path_errors.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

namespace fs = std::filesystem;

/// Returns the path itself, or its nearest visible parent that exists.
std::optional<fs::path> nearest_existing(const fs::path& path) {
  for (fs::path part = path; !part.empty(); part = part.parent_path()) {
    struct stat info{};
    if (stat(part.c_str(), &info) == 0) return part;
    if (part == part.parent_path()) break;
  }
  return std::nullopt;
}

/// Returns the topmost folder of the file system that contains `path`.
fs::path mount_point(fs::path path) {
  CHECK(path.is_absolute());
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return path;
  while (path != path.parent_path()) {
    struct stat above{};
    if (stat(path.parent_path().c_str(), &above) != 0 || above.st_dev != info.st_dev) break;
    path = path.parent_path();
  }
  return path;
}

bool is_trusted(uid_t user) { return user == geteuid() || user == 0; }

std::unexpected<Error> unsafe(const std::string& path, const std::string& why,
                              const std::string& key) {
  CHECK(!key.empty());
  return make_error(ExitCode::failed, path + ": " + why + ": change " + key +
                                          " to a folder of user " + std::to_string(geteuid()) +
                                          " alone");
}

/// Returns whether other users may change entries of the folder. Groups of the current user and of
/// root are trusted, because many systems give each user a private group.
bool is_open_to_others(const struct stat& folder) {
  if ((folder.st_mode & S_ISVTX) != 0) return false;
  if ((folder.st_mode & S_IWOTH) != 0) return true;
  return (folder.st_mode & S_IWGRP) != 0 && folder.st_gid != getegid() && folder.st_gid != 0;
}

/// Implements check_parents. Also accepts folders that belong to the user `also`.
Result<void> check_parents_but(uid_t also, const std::string& path, const std::string& key) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error).lexically_normal();
  for (std::filesystem::path folder = absolute.parent_path();; folder = folder.parent_path()) {
    struct stat info{};
    if (stat(folder.c_str(), &info) == 0) {
      if (!is_trusted(info.st_uid) && info.st_uid != also) {
        return unsafe(folder.string(), "belongs to user " + std::to_string(info.st_uid), key);
      }
      if (is_open_to_others(info)) {
        return unsafe(folder.string(), "other users may rename what is in it", key);
      }
    } else if (errno != ENOENT) {
      return unsafe(folder.string(), "cannot be examined: " + error_text(errno), key);
    }
    if (folder == folder.parent_path()) return {};
  }
}

}  // namespace

std::string error_text(int error_number) {
  const char* const text = ::strerrordesc_np(error_number);
  return text != nullptr ? text : "Unknown error " + std::to_string(error_number);
}

bool is_disk_full(int error_number) { return error_number == ENOSPC || error_number == EDQUOT; }
bool is_refusal(int error_number) { return error_number == EACCES || error_number == EPERM; }

std::string user_text(unsigned user) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> text{};
  if (getpwuid_r(user, &entry, text.data(), text.size(), &found) == 0 && found != nullptr) {
    return fmt::format("{} (uid {})", entry.pw_name, user);
  }
  return fmt::format("uid {}", user);
}

std::string refusal_text(const std::string& path) {
  fs::path so_far;
  fs::path last;
  struct stat info{};
  struct stat last_info{};
  for (const fs::path& part : fs::path(path)) {
    so_far /= part;
    if (stat(so_far.c_str(), &info) != 0) break;
    last = so_far;
    last_info = info;
    const bool is_folder = S_ISDIR(info.st_mode);
    if (eaccess(so_far.c_str(), is_folder ? X_OK : R_OK) != 0) break;
  }
  if (last.empty() || !path.starts_with('/')) return "";
  return fmt::format("{} belongs to {} with mode {:04o}, and this is {}", last.string(),
                     user_text(last_info.st_uid), last_info.st_mode & 07777u, user_text(geteuid()));
}

std::string room_text(const std::string& path) {
  if (!path.starts_with('/')) return "";
  const auto existing = nearest_existing(path);
  struct statvfs info{};
  if (!existing || statvfs(existing->c_str(), &info) != 0) return "";
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  return fmt::format("the file system of {} (mounted on {}) has {} MiB of {} MiB free", path,
                     mount_point(*existing).string(), info.f_bavail * info.f_frsize / kMiB,
                     info.f_blocks * info.f_frsize / kMiB);
}

Error path_error(const std::string& path, std::string_view what, int error_number,
                 std::string_view way_out) {
  CHECK(!what.empty() && !way_out.empty());
  const std::string failed = fmt::format("{}: {}: {}", path, what, error_text(error_number));
  if (is_disk_full(error_number)) {
    return {ExitCode::disk_full,
            fmt::format("{}: {}: free space there (old logs, `discarded-<n>` folders and data of "
                        "other programs are candidates), or {}",
                        failed, room_text(path), way_out)};
  }
  if (is_refusal(error_number)) {
    const std::string who = refusal_text(path);
    return {ExitCode::failed, fmt::format("{}{}{}: run the command as that user or as root, or {}",
                                          failed, who.empty() ? "" : ": ", who, way_out)};
  }
  return {ExitCode::failed, fmt::format("{}: {}", failed, way_out)};
}

Result<void> check_parents(const std::string& path, const std::string& key) {
  return check_parents_but(geteuid(), path, key);
}

Result<void> check_owned(const std::string& path, const std::string& key) {
  ATOLL_TRY(check_parents(path, key));
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) return {};
  if (S_ISLNK(info.st_mode)) return unsafe(path, "is a link", key);
  if (is_trusted(info.st_uid)) return {};
  return unsafe(path, "belongs to user " + std::to_string(info.st_uid), key);
}

Result<void> check_socket_file(const std::string& path, const std::string& key) {
  struct stat file{};
  struct stat folder{};
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const bool is_of_one_user = lstat(path.c_str(), &file) == 0 && !S_ISLNK(file.st_mode) &&
                              stat(parent.c_str(), &folder) == 0 && file.st_uid == folder.st_uid;
  if (geteuid() == 0 && is_of_one_user) return check_parents_but(file.st_uid, path, key);
  return check_owned(path, key);
}

Result<void> check_peer_user(uid_t peer, const std::string& what) {
  CHECK(!what.empty());
  if (is_trusted(peer)) return {};
  return make_error(ExitCode::failed, what + ": a process of user " + std::to_string(peer) +
                                          " listens there, this process is of user " +
                                          std::to_string(geteuid()) +
                                          ": run it as the user of the cluster");
}

Result<void> check_peer(int socket, const std::string& what) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    return make_error(ExitCode::failed, what + ": the user of the listening process is unknown: " +
                                            error_text(errno) + ": run `atoll status`");
  }
  CHECK(length == sizeof peer);
  return check_peer_user(peer.uid, what);
}

}  // namespace atolldb
