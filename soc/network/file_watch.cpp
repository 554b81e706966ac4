#include "soc/network/file_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

namespace fs = std::filesystem;

/// As many as Linux follows.
constexpr int kMaxLinks = 40;

/// Puts the parts of a path before those that remain.
void prepend(const fs::path& path, std::deque<fs::path>& rest) {
  rest.insert(rest.begin(), path.begin(), path.end());
}

/// Returns whether a new name is a link, or a file with content. A file that was opened to be
/// written is empty until then, and IN_CLOSE_WRITE follows. A hard link has all content at once.
bool has_content(const fs::path& path) {
  std::error_code error;
  if (fs::is_symlink(path, error)) return true;
  const uintmax_t size = fs::file_size(path, error);
  return !error && size != 0;
}

}  // namespace

Result<void> FileWatch::open(const std::string& path) {
  path_ = path;
  CHECK(path_.is_absolute());
  return watch_way();
}

Result<void> FileWatch::watch(const fs::path& folder, const fs::path& name) {
  // Watches the folder, because editors replace a file instead of writing it. `ln` makes a link
  // without a rename. `chmod` may make a file usable that could not be used before.
  constexpr uint32_t kEvents =
      IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB;
  const int added = inotify_add_watch(events_.get(), folder.c_str(), kEvents);
  if (added < 0) {
    return make_error(ExitCode::resources, "network: " + folder.string() +
                                               ": cannot be watched: " + std::strerror(errno) +
                                               ": raise fs.inotify.max_user_watches");
  }
  names_.emplace(added, folder / name);
  return {};
}

Result<void> FileWatch::watch_way() {
  events_ = UniqueFd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  names_.clear();
  if (!events_.is_open()) {
    return make_error(ExitCode::resources, "network: " + path_.string() +
                                               ": cannot be watched: " + std::strerror(errno) +
                                               ": raise fs.inotify.max_user_instances");
  }
  fs::path folder = "/";
  std::deque<fs::path> rest;
  prepend(path_.relative_path(), rest);
  for (int links = 0; !rest.empty();) {
    const fs::path name = rest.front();
    rest.pop_front();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      folder = folder.parent_path();
      continue;
    }
    std::error_code error;
    fs::path target = fs::read_symlink(folder / name, error);
    if (!error || rest.empty()) {
      ATOLL_TRY(watch(folder, name));
      // Reads the link again, because it may have been replaced before the watch began.
      target = fs::read_symlink(folder / name, error);
    }
    if (error) {
      folder /= name;
      continue;
    }
    if (++links > kMaxLinks) break;  // the file cannot be opened either
    if (target.is_absolute()) folder = "/";
    prepend(target.relative_path(), rest);
  }
  return {};
}

bool FileWatch::has_changed() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  bool has_changed = false;
  for (;;) {
    const ssize_t got = read(events_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    for (ssize_t at = 0; at < got;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const char* const name = buffer.data() + at + sizeof(event);
      at += static_cast<ssize_t>(sizeof(event) + event.len);
      if ((event.mask & IN_Q_OVERFLOW) != 0) has_changed = true;  // events were lost
      if (event.len == 0) continue;
      const auto [first, last] = names_.equal_range(event.wd);
      for (auto each = first; each != last; ++each) {
        if (each->second.filename() != name) continue;
        has_changed |= (event.mask & IN_CREATE) == 0 || has_content(each->second);
      }
    }
  }
  if (!has_changed) return false;
  // Another way may lead to the file now. The old watches remain if the new way is incomplete.
  UniqueFd old_events = std::exchange(events_, UniqueFd());
  Names old_names = std::exchange(names_, {});
  if (!watch_way()) {
    events_ = std::move(old_events);
    names_ = std::move(old_names);
  }
  return true;
}

}  // namespace atolldb
