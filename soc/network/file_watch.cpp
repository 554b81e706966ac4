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

}  // namespace

Result<void> FileWatch::open(const std::string& path) {
  path_ = path;
  CHECK(path_.is_absolute());
  return watch_way();
}

Result<void> FileWatch::watch(const fs::path& folder, const fs::path& name) {
  // Watches the folder, because editors replace a file instead of writing it. `ln` makes a link
  // without a rename.
  const int added =
      inotify_add_watch(events_.get(), folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE);
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
    const fs::path target = fs::read_symlink(folder / name, error);
    const bool is_link = !error;
    if (is_link || rest.empty()) ATOLL_TRY(watch(folder, name));
    if (!is_link) {
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
        // A new file is empty until its writer closes it.
        std::error_code error;
        has_changed |= (event.mask & IN_CREATE) == 0 || fs::is_symlink(each->second, error);
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
