#include "ops/launcher/cluster_note.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <vector>

#include "shared/base/path_errors.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

namespace fs = std::filesystem;

/// Parent of the note folders. It is fixed, because the path of a note must not depend on TMPDIR.
constexpr const char* kNotesRoot = "/tmp";
constexpr const char* kUserPrefix = "atoll-";
constexpr const char* kWayOut = "other commands then find the cluster by its run folder only";

std::string user_folder_of(uid_t user) {
  return fmt::format("{}/{}{}", kNotesRoot, kUserPrefix, user);
}

/// Returns the FNV-1a hash, which is the same in every build. std::hash is not.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

/// Returns whether this user owns the folder and no other user may write to it. Other folders do
/// not count, because every user may write to /tmp.
bool is_private(const std::string& folder, uid_t user) {
  struct stat info{};
  return lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == user &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

Result<void> make_private(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return std::unexpected(path_error(folder, "cannot be made", errno, kWayOut));
  }
  if (is_private(folder, geteuid())) return {};
  return make_error(ExitCode::failed,
                    fmt::format("{}: is not a folder of {} alone: remove it, or change its owner "
                                "and mode: {}",
                                folder, user_text(geteuid()), kWayOut));
}

/// Removes notes that no process holds. If a start-up opens such a note meanwhile, it notices the
/// removal and tries again.
void remove_dead(const std::string& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const UniqueFd note(open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!note.is_open() || flock(note.get(), LOCK_EX | LOCK_NB) != 0) continue;
    struct stat locked{};
    struct stat named{};
    if (fstat(note.get(), &locked) == 0 && lstat(entry.path().c_str(), &named) == 0 &&
        locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
      unlink(entry.path().c_str());
    }
  }
}

/// Returns the users whose notes are read: this user, or for root all users.
std::vector<uid_t> visible_users() {
  std::vector<uid_t> users = {geteuid()};
  if (geteuid() != 0) return users;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(kNotesRoot, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kUserPrefix)) continue;
    const char* const begin = name.data() + std::string_view(kUserPrefix).size();
    const char* const end = name.data() + name.size();
    uid_t user = 0;
    if (std::from_chars(begin, end, user).ptr == end && user != 0) users.push_back(user);
  }
  return users;
}

bool is_owner(uid_t user, const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && info.st_uid == user;
}

}  // namespace

std::string notes_folder(uid_t user) { return user_folder_of(user) + "/.by-config"; }

std::string note_path(uid_t user, const std::string& config_file) {
  return fmt::format("{}/{:016x}", notes_folder(user), hash_of(config_file));
}

std::string canonical_config_file(const std::string& path) {
  std::error_code error;
  if (path.empty() || !fs::is_regular_file(path, error)) return "";
  const fs::path full = fs::canonical(path, error);
  // /proc/self/fd gives a pipe or a deleted file a name that is not a path.
  return error || !fs::exists(full, error) ? "" : full.string();
}

Result<ClusterNote> ClusterNote::leave(const std::string& config_file, const Config& config) {
  const uid_t user = geteuid();
  for (const std::string& folder : {user_folder_of(user), notes_folder(user)}) {
    ATOLL_TRY(make_private(folder));
  }
  remove_dead(notes_folder(user));
  std::string path = note_path(user, config_file);
  ATOLL_ASSIGN(auto lock, ProcessLock::acquire(path, config.cluster.name, "config file"));
  ClusterNote note(std::move(path), std::move(lock));
  note.lock_.set_run_dir(config.cluster.run_dir);
  ATOLL_TRY(note.lock_.write_processes({}));
  return note;
}

ClusterNote::~ClusterNote() {
  if (!lock_.is_held()) return;
  // Removes the file only if it is still the locked one. If a cleaner of /tmp has removed that
  // file, a file of the same name may belong to another cluster.
  if (lock_.is_in_place()) unlink(path_.c_str());
}

std::optional<LockHolder> noted_cluster(const std::string& config_file,
                                        const std::string& data_dir) {
  if (config_file.empty()) return std::nullopt;
  for (const uid_t user : visible_users()) {
    // Checks the owner, because any user can leave a note for any file. Without this check,
    // commands of root could reach that user's cluster.
    const bool counts =
        user == geteuid() || is_owner(user, config_file) || is_owner(user, data_dir);
    if (!counts) continue;
    if (!is_private(user_folder_of(user), user) || !is_private(notes_folder(user), user)) continue;
    // A note that cannot be read is treated as missing.
    const auto holder = holder_of_lock(note_path(user, config_file));
    if (holder && *holder) return *holder;
  }
  return std::nullopt;
}

}  // namespace atolldb
