#include "tests/support/power_cut_file_system.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <utility>

#include "shared/file/file_errors.h"

namespace atolldb::test {
namespace {

using Sector = std::array<std::byte, kSectorBytes>;
using SectorPtr = std::shared_ptr<const Sector>;

/// Sectors that were never written read as zeros.
struct Inode {
  uint64_t size = 0;
  uint64_t synced_size = 0;
  std::map<uint64_t, SectorPtr> synced;
  /// all versions since the last sync, oldest first
  std::map<uint64_t, std::vector<SectorPtr>> unsynced;
  std::map<uint64_t, SectorPtr> cached;  ///< lost by a failed sync, but still returned to readers

  const Sector* current(uint64_t index) const {
    if (const auto found = unsynced.find(index); found != unsynced.end()) {
      return found->second.back().get();
    }
    if (const auto found = cached.find(index); found != cached.end()) return found->second.get();
    const auto found = synced.find(index);
    return found == synced.end() ? nullptr : found->second.get();
  }
};
using InodePtr = std::shared_ptr<Inode>;

using Names = std::map<std::string, InodePtr>;
/// Maps the path of a directory to its names. Directories are durable once created: their own
/// entries are synced.
using Directories = std::map<std::string, Names>;

struct NameChange {
  std::string directory;
  std::string name;
  InodePtr inode;  ///< null: the name is removed
};
/// A creation or removal is one change. A rename is two changes that survive together or not at
/// all.
using NameOperation = std::vector<NameChange>;

void carry_out(const NameOperation& operation, Directories& directories) {
  for (const NameChange& change : operation) {
    if (change.inode == nullptr) {
      directories[change.directory].erase(change.name);
    } else {
      directories[change.directory][change.name] = change.inode;
    }
  }
}

std::string normal(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

/// Splits a path into directory and name.
std::pair<std::string, std::string> split(const std::string& path) {
  const std::string text = normal(path);
  const size_t slash = text.rfind('/');
  if (slash == std::string::npos) return {".", text};
  return {slash == 0 ? "/" : text.substr(0, slash), text.substr(slash + 1)};
}

enum class Loss : uint8_t { random, all, nothing };

/// Decides which unsynced state survives a cut. The share that survives is drawn separately for
/// each file: one file may lose everything while another one loses nothing.
class Survival {
 public:
  Survival(Loss loss, uint64_t seed) : loss_(loss), random_(seed) { draw_share(); }

  void draw_share() {
    constexpr std::array<double, 5> kShares{0, 0.1, 0.5, 0.9, 1};
    share_ = kShares[below(kShares.size())];
  }
  bool survives() {
    if (loss_ != Loss::random) return loss_ == Loss::nothing;
    return static_cast<double>(random_() >> 11) * 0x1p-53 < share_;
  }
  /// Index of the version, out of `count`, that reached the device last. Mostly the newest one.
  uint64_t version(uint64_t count) {
    return loss_ != Loss::random || random_() % 2 == 0 ? count - 1 : below(count);
  }
  uint64_t below(uint64_t limit) { return random_() % limit; }
  uint64_t size(uint64_t synced, uint64_t size) {
    if (synced == size || survives()) return size;
    if (loss_ != Loss::random || random_() % 2 == 0) return synced;
    return synced + below((size - synced) / kSectorBytes + 1) * kSectorBytes;
  }

 private:
  Loss loss_;
  std::mt19937_64 random_;
  double share_ = 0;
};

InodePtr survivor(const Inode& inode, Survival& survival) {
  survival.draw_share();
  auto left = std::make_shared<Inode>();
  left->size = left->synced_size = survival.size(inode.synced_size, inode.size);
  left->synced = inode.synced;
  for (const auto& [index, versions] : inode.unsynced) {
    if (survival.survives()) left->synced[index] = versions[survival.version(versions.size())];
  }
  left->synced.erase(left->synced.lower_bound(left->size / kSectorBytes), left->synced.end());
  return left;
}

}  // namespace

struct PowerCutState {
  mutable std::mutex mutex;  // protects all that follows, inodes included
  bool is_off = false;
  Directories current{{"/", {}}};
  Directories synced{{"/", {}}};
  std::vector<NameOperation> unsynced;  ///< oldest first

  Result<void> check_power(const std::string& what) const {
    if (is_off) return make_error(ExitCode::durability, what + ": the power is off");
    return {};
  }
  InodePtr find(const std::string& path) const {
    const auto [directory, name] = split(path);
    const auto names = current.find(directory);
    if (names == current.end()) return nullptr;
    const auto entry = names->second.find(name);
    return entry == names->second.end() ? nullptr : entry->second;
  }
  void change(NameOperation operation) {
    carry_out(operation, current);
    unsynced.push_back(std::move(operation));
  }
  /// Makes the directory's names durable. For operations on the same name, a later one never
  /// becomes durable before an earlier one.
  void sync_names(const std::string& directory) {
    std::vector<std::pair<std::string, std::string>> needed;
    std::vector<bool> chosen(unsynced.size());
    for (size_t index = unsynced.size(); index-- > 0;) {
      for (const NameChange& change : unsynced[index]) {
        chosen[index] =
            chosen[index] || change.directory == directory ||
            std::ranges::find(needed, std::pair(change.directory, change.name)) != needed.end();
      }
      if (!chosen[index]) continue;
      for (const NameChange& change : unsynced[index]) {
        needed.emplace_back(change.directory, change.name);
      }
    }
    std::vector<NameOperation> left;
    for (size_t index = 0; index < unsynced.size(); ++index) {
      if (chosen[index]) {
        carry_out(unsynced[index], synced);
      } else {
        left.push_back(std::move(unsynced[index]));
      }
    }
    unsynced = std::move(left);
  }
  std::shared_ptr<PowerCutState> cut(Loss loss, uint64_t seed) const {
    const std::lock_guard lock(mutex);
    Survival survival(loss, seed);
    auto image = std::make_shared<PowerCutState>();
    image->synced = synced;
    for (const NameOperation& operation : unsynced) {
      if (survival.survives()) carry_out(operation, image->synced);
    }
    // A file may have two names if only one of two operations on it survived.
    std::map<InodePtr, InodePtr> survivors;
    for (auto& [directory, names] : image->synced) {
      for (auto& [name, inode] : names) {
        InodePtr& left = survivors[inode];
        if (left == nullptr) left = survivor(*inode, survival);
        inode = left;
      }
    }
    image->current = image->synced;
    return image;
  }
};

namespace {

class PowerCutFile : public File {
 public:
  PowerCutFile(std::shared_ptr<PowerCutState> state, InodePtr inode, std::string path,
               bool is_writable)
      : state_(std::move(state)),
        inode_(std::move(inode)),
        path_(std::move(path)),
        is_writable_(is_writable) {}

  Result<void> write(uint64_t offset, std::span<const std::span<const std::byte>> slices) override {
    const std::string what = write_text(path_, offset, total_bytes(slices));
    const std::lock_guard lock(state_->mutex);
    if (auto on = state_->check_power(what); !on) return on;
    if (!is_writable_) return io_error(what, EBADF);
    if (auto good = check_write(path_, inode_->size, offset, slices); !good) return good;
    uint64_t index = offset / kSectorBytes;
    for (const auto& slice : slices) {
      for (size_t at = 0; at < slice.size(); at += kSectorBytes) {
        auto sector = std::make_shared<Sector>();
        std::memcpy(sector->data(), slice.data() + at, kSectorBytes);
        inode_->unsynced[index++].push_back(std::move(sector));
      }
    }
    return {};
  }

  Result<void> grow(uint64_t bytes) override {
    const std::string what = "growth of " + path_;
    const std::lock_guard lock(state_->mutex);
    if (auto on = state_->check_power(what); !on) return on;
    if (!is_writable_) return io_error(what, EBADF);
    if (auto good = check_grow(path_, inode_->size, bytes); !good) return good;
    inode_->size = bytes;
    return {};
  }

  Result<void> sync() override {
    const std::lock_guard lock(state_->mutex);
    if (auto on = state_->check_power("sync of " + path_); !on) return on;
    if (!is_writable_) return io_error("sync of " + path_, EBADF);
    for (auto& [index, versions] : inode_->unsynced) {
      inode_->synced[index] = versions.back();
      inode_->cached.erase(index);
    }
    inode_->unsynced.clear();
    inode_->synced_size = inode_->size;
    return {};
  }

  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    const std::lock_guard lock(state_->mutex);
    if (auto on = state_->check_power("read of " + path_); !on) {
      return std::unexpected(on.error());
    }
    if (offset >= inode_->size) return 0;
    const uint64_t bytes = std::min<uint64_t>(into.size(), inode_->size - offset);
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t skipped = (offset + done) % kSectorBytes;
      const uint64_t part = std::min(kSectorBytes - skipped, bytes - done);
      const Sector* sector = inode_->current((offset + done) / kSectorBytes);
      if (sector == nullptr) {
        std::memset(into.data() + done, 0, part);
      } else {
        std::memcpy(into.data() + done, sector->data() + skipped, part);
      }
      done += part;
    }
    return bytes;
  }

  Result<uint64_t> size() const override {
    const std::lock_guard lock(state_->mutex);
    if (auto on = state_->check_power("size of " + path_); !on) {
      return std::unexpected(on.error());
    }
    return inode_->size;
  }

  const std::string& path() const override { return path_; }

 private:
  std::shared_ptr<PowerCutState> state_;
  InodePtr inode_;
  std::string path_;
  bool is_writable_;
};

Result<std::unique_ptr<File>> open_file(const std::shared_ptr<PowerCutState>& state,
                                        const std::string& path, bool is_writable) {
  const std::lock_guard lock(state->mutex);
  if (auto on = state->check_power("opening " + path); !on) return std::unexpected(on.error());
  InodePtr inode = state->find(path);
  if (inode == nullptr) return io_error("opening " + path, ENOENT);
  return std::make_unique<PowerCutFile>(state, std::move(inode), path, is_writable);
}

SectorPtr flipped(const SectorPtr& sector, uint64_t at, uint8_t mask) {
  auto copy = sector == nullptr ? std::make_shared<Sector>() : std::make_shared<Sector>(*sector);
  (*copy)[at] ^= std::byte{mask};
  return copy;
}

}  // namespace

PowerCutFileSystem::PowerCutFileSystem() : state_(std::make_shared<PowerCutState>()) {}
PowerCutFileSystem::PowerCutFileSystem(std::shared_ptr<PowerCutState> state)
    : state_(std::move(state)) {}
PowerCutFileSystem::~PowerCutFileSystem() = default;

std::unique_ptr<PowerCutFileSystem> PowerCutFileSystem::cut(uint64_t seed) const {
  return std::unique_ptr<PowerCutFileSystem>(
      new PowerCutFileSystem(state_->cut(Loss::random, seed)));
}

std::unique_ptr<PowerCutFileSystem> PowerCutFileSystem::cut_losing_all() const {
  return std::unique_ptr<PowerCutFileSystem>(new PowerCutFileSystem(state_->cut(Loss::all, 0)));
}

std::unique_ptr<PowerCutFileSystem> PowerCutFileSystem::cut_losing_nothing() const {
  return std::unique_ptr<PowerCutFileSystem>(new PowerCutFileSystem(state_->cut(Loss::nothing, 0)));
}

void PowerCutFileSystem::power_off() {
  const std::lock_guard lock(state_->mutex);
  state_->is_off = true;
}

uint64_t PowerCutFileSystem::unsynced_sectors() const {
  const std::lock_guard lock(state_->mutex);
  uint64_t count = 0;
  for (const auto& [directory, names] : state_->current) {
    for (const auto& [name, inode] : names) count += inode->unsynced.size();
  }
  return count;
}

uint64_t PowerCutFileSystem::unsynced_names() const {
  const std::lock_guard lock(state_->mutex);
  uint64_t count = 0;
  for (const NameOperation& operation : state_->unsynced) count += operation.size();
  return count;
}

Result<void> PowerCutFileSystem::corrupt(const std::string& path, uint64_t offset, uint8_t mask) {
  const std::lock_guard lock(state_->mutex);
  const InodePtr inode = state_->find(path);
  if (inode == nullptr) return io_error("damage of " + path, ENOENT);
  if (offset >= inode->size) return io_error("damage of " + path, EINVAL);
  const uint64_t index = offset / kSectorBytes;
  const uint64_t at = offset % kSectorBytes;
  inode->synced[index] = flipped(inode->synced[index], at, mask);
  if (const auto found = inode->unsynced.find(index); found != inode->unsynced.end()) {
    for (SectorPtr& version : found->second) version = flipped(version, at, mask);
  }
  return {};
}

Result<void> PowerCutFileSystem::replace(const std::string& path, uint64_t offset,
                                         std::span<const std::byte> sectors) {
  const std::lock_guard lock(state_->mutex);
  const InodePtr inode = state_->find(path);
  if (inode == nullptr) return io_error("damage of " + path, ENOENT);
  if (offset + sectors.size() > inode->size) return io_error("damage of " + path, EINVAL);
  for (size_t at = 0; at < sectors.size(); at += kSectorBytes) {
    auto sector = std::make_shared<Sector>();
    std::memcpy(sector->data(), sectors.data() + at, kSectorBytes);
    inode->unsynced.erase((offset + at) / kSectorBytes);
    inode->synced[(offset + at) / kSectorBytes] = std::move(sector);
  }
  return {};
}

Result<void> PowerCutFileSystem::truncate(const std::string& path, uint64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  const InodePtr inode = state_->find(path);
  if (inode == nullptr) return io_error("damage of " + path, ENOENT);
  inode->size = inode->synced_size = bytes;
  inode->synced.erase(inode->synced.lower_bound(bytes / kSectorBytes), inode->synced.end());
  inode->unsynced.erase(inode->unsynced.lower_bound(bytes / kSectorBytes), inode->unsynced.end());
  return {};
}

void PowerCutFileSystem::fail_sync(const std::string& path, uint64_t seed) {
  const std::lock_guard lock(state_->mutex);
  const InodePtr inode = state_->find(path);
  if (inode == nullptr) return;
  Survival survival(Loss::random, seed);
  for (auto& [index, versions] : inode->unsynced) {
    if (survival.survives()) {
      inode->synced[index] = versions.back();
    } else {
      inode->cached[index] = versions.back();
    }
  }
  inode->unsynced.clear();
}

void PowerCutFileSystem::evict() {
  const std::lock_guard lock(state_->mutex);
  for (const auto& [directory, names] : state_->current) {
    for (const auto& [name, inode] : names) inode->cached.clear();
  }
}

Result<void> PowerCutFileSystem::forget_cached(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  if (auto on = state_->check_power("look-up of " + path); !on) return on;
  if (const InodePtr inode = state_->find(path)) inode->cached.clear();
  return {};
}

Result<std::unique_ptr<File>> PowerCutFileSystem::create(const std::string& path, uint64_t bytes) {
  if (auto good = check_create(path, bytes); !good) return std::unexpected(good.error());
  const auto [directory, name] = split(path);
  const std::lock_guard lock(state_->mutex);
  if (auto on = state_->check_power("creation of " + path); !on) {
    return std::unexpected(on.error());
  }
  if (!state_->current.contains(directory)) return io_error("creation of " + path, ENOENT);
  if (state_->find(path) != nullptr || state_->current.contains(normal(path))) {
    return io_error("creation of " + path, EEXIST);
  }
  auto inode = std::make_shared<Inode>();
  inode->size = bytes;
  state_->change({{directory, name, inode}});
  return std::make_unique<PowerCutFile>(state_, std::move(inode), path, true);
}

Result<std::unique_ptr<File>> PowerCutFileSystem::open(const std::string& path) {
  return open_file(state_, path, true);
}

Result<std::unique_ptr<File>> PowerCutFileSystem::open_for_reading(const std::string& path) {
  return open_file(state_, path, false);
}

Result<void> PowerCutFileSystem::sync_directory(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  if (auto on = state_->check_power("sync of " + path); !on) return on;
  if (!state_->current.contains(normal(path))) return io_error("sync of directory " + path, ENOENT);
  state_->sync_names(normal(path));
  return {};
}

Result<void> PowerCutFileSystem::make_directory(const std::string& path) {
  const std::string full = normal(path);
  const std::lock_guard lock(state_->mutex);
  if (auto on = state_->check_power("creation of " + path); !on) return on;
  for (size_t end = 0; end != std::string::npos;) {
    end = full.find('/', end + 1);
    const std::string part = full.substr(0, end);
    if (state_->find(part) != nullptr) return io_error("creation of directory " + part, ENOTDIR);
    state_->current.try_emplace(part);
    state_->synced.try_emplace(part);
  }
  return {};
}

Result<std::vector<std::string>> PowerCutFileSystem::list(const std::string& path) {
  const std::string full = normal(path);
  const std::lock_guard lock(state_->mutex);
  if (auto on = state_->check_power("listing of " + path); !on) {
    return std::unexpected(on.error());
  }
  const auto names = state_->current.find(full);
  if (names == state_->current.end()) return io_error("listing of " + path, ENOENT);
  std::vector<std::string> found;
  for (const auto& [name, inode] : names->second) found.push_back(name);
  for (const auto& [directory, unused] : state_->current) {
    const auto [parent, name] = split(directory);
    if (directory != "/" && parent == full) found.push_back(name);
  }
  std::ranges::sort(found);
  return found;
}

Result<bool> PowerCutFileSystem::exists(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  if (auto on = state_->check_power("look-up of " + path); !on) return std::unexpected(on.error());
  return state_->find(path) != nullptr || state_->current.contains(normal(path));
}

Result<void> PowerCutFileSystem::rename(const std::string& from, const std::string& to) {
  const auto [from_directory, from_name] = split(from);
  const auto [to_directory, to_name] = split(to);
  const std::string what = "renaming of " + from + " to " + to;
  const std::lock_guard lock(state_->mutex);
  if (auto on = state_->check_power(what); !on) return on;
  InodePtr inode = state_->find(from);
  if (inode == nullptr || !state_->current.contains(to_directory)) return io_error(what, ENOENT);
  if (state_->current.contains(normal(to))) return io_error(what, EISDIR);
  if (normal(from) == normal(to)) return {};
  state_->change({{from_directory, from_name, nullptr}, {to_directory, to_name, std::move(inode)}});
  return {};
}

Result<void> PowerCutFileSystem::remove(const std::string& path) {
  const auto [directory, name] = split(path);
  const std::lock_guard lock(state_->mutex);
  if (auto on = state_->check_power("removal of " + path); !on) return on;
  if (state_->current.contains(normal(path))) return io_error("removal of " + path, EISDIR);
  if (state_->find(path) == nullptr) return io_error("removal of " + path, ENOENT);
  state_->change({{directory, name, nullptr}});
  return {};
}

Result<bool> PowerCutFileSystem::link(const std::string& from, const std::string& to) {
  const auto [directory, name] = split(to);
  const std::string what = "linking of " + from + " to " + to;
  const std::lock_guard lock(state_->mutex);
  if (auto on = state_->check_power(what); !on) return std::unexpected(on.error());
  InodePtr inode = state_->find(from);
  if (inode == nullptr || !state_->current.contains(directory)) return io_error(what, ENOENT);
  if (state_->find(to) != nullptr) return io_error(what, EEXIST);
  state_->change({{directory, name, std::move(inode)}});
  return true;
}

Result<void> PowerCutFileSystem::remove_directory(const std::string& path) {
  const std::string full = normal(path);
  const std::string what = "removal of directory " + path;
  const std::lock_guard lock(state_->mutex);
  if (auto on = state_->check_power(what); !on) return on;
  const auto names = state_->current.find(full);
  if (names == state_->current.end()) return io_error(what, ENOENT);
  const bool has_directory = std::ranges::any_of(
      state_->current, [&](const auto& entry) { return split(entry.first).first == full; });
  if (!names->second.empty() || (has_directory && full != "/")) return io_error(what, ENOTEMPTY);
  state_->sync_names(full);
  state_->current.erase(full);
  state_->synced.erase(full);
  return {};
}

}  // namespace atolldb::test
