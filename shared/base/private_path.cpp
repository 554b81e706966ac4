#include "shared/base/private_path.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

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

/// `also`: one more user whose folders are accepted.
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
      return unsafe(folder.string(), std::string("cannot be examined: ") + std::strerror(errno),
                    key);
    }
    if (folder == folder.parent_path()) return {};
  }
}

}  // namespace

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
                                            std::strerror(errno) + ": run `atoll status`");
  }
  CHECK(length == sizeof peer);
  return check_peer_user(peer.uid, what);
}

}  // namespace atolldb
