#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_errors.h"
#include "shared/file/file_system.h"

namespace atolldb {
namespace {

std::string normal(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

std::string parent_of_normal(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

/// File system that discards data, to measure the cost of a log without a device. It keeps names
/// and sizes in this process, drops writes, and fails reads. REQUIRES: this object outlives its
/// files.
class NullFileSystem : public FileSystem {
 public:
  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> make_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  bool is_durable() const override { return false; }
  std::string describe() const override { return "null, keeps nothing: for measuring only"; }

 private:
  friend class NullFile;
  Result<std::unique_ptr<File>> open_file(const std::string& path, bool is_writable);

  std::mutex mutex_;
  std::map<std::string, uint64_t> files_;  // size by normalised path
  std::set<std::string> directories_{"/"};
};

class NullFile : public File {
 public:
  NullFile(NullFileSystem& owner, std::string path, uint64_t size, bool is_writable)
      : owner_(owner), path_(std::move(path)), size_(size), is_writable_(is_writable) {}

  Result<void> write(uint64_t offset, std::span<const std::span<const std::byte>> slices) override {
    if (!is_writable_) return io_error(write_text(path_, offset, total_bytes(slices)), EBADF);
    return check_write(path_, size_, offset, slices);
  }
  Result<void> grow(uint64_t bytes) override {
    if (!is_writable_) return io_error("growth of " + path_, EBADF);
    ATOLL_TRY(check_grow(path_, size_, bytes));
    CHECK(bytes >= size_);
    size_ = bytes;
    const std::lock_guard lock(owner_.mutex_);
    if (const auto found = owner_.files_.find(normal(path_)); found != owner_.files_.end()) {
      found->second = bytes;
    }
    return {};
  }
  Result<void> sync() override {
    if (!is_writable_) return io_error("sync of " + path_, EBADF);
    return {};
  }
  Result<uint64_t> read(uint64_t, std::span<std::byte>) const override {
    return make_error(ExitCode::durability,
                      "read of " + path_ +
                          ": the null log keeps nothing, it is for measuring only: set "
                          "durability.backend = \"posix\" to read back what was written");
  }
  Result<uint64_t> size() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  NullFileSystem& owner_;
  std::string path_;
  uint64_t size_;
  bool is_writable_;
};

Result<std::unique_ptr<File>> NullFileSystem::create(const std::string& path, uint64_t bytes) {
  ATOLL_TRY(check_create(path, bytes));
  const std::string full = normal(path);
  const std::lock_guard lock(mutex_);
  if (!directories_.contains(parent_of_normal(full)))
    return io_error("creation of " + path, ENOENT);
  if (directories_.contains(full) || !files_.emplace(full, bytes).second) {
    return io_error("creation of " + path, EEXIST);
  }
  return std::make_unique<NullFile>(*this, path, bytes, true);
}

Result<std::unique_ptr<File>> NullFileSystem::open(const std::string& path) {
  return open_file(path, true);
}

Result<std::unique_ptr<File>> NullFileSystem::open_for_reading(const std::string& path) {
  return open_file(path, false);
}

Result<std::unique_ptr<File>> NullFileSystem::open_file(const std::string& path, bool is_writable) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(normal(path));
  if (found == files_.end()) return io_error("opening " + path, ENOENT);
  CHECK(found->second % kIoBlockBytes == 0);
  return std::make_unique<NullFile>(*this, path, found->second, is_writable);
}

Result<void> NullFileSystem::sync_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (!directories_.contains(normal(path))) return io_error("sync of directory " + path, ENOENT);
  return {};
}

Result<void> NullFileSystem::make_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> made;
  for (std::string part = normal(path); !directories_.contains(part);
       part = parent_of_normal(part)) {
    if (part.empty()) break;  // a relative path has no more parents
    if (files_.contains(part)) return io_error("creation of directory " + path, ENOTDIR);
    made.push_back(part);
  }
  directories_.insert(made.begin(), made.end());
  CHECK(path.empty() || directories_.contains(normal(path)));
  return {};
}

Result<std::vector<std::string>> NullFileSystem::list(const std::string& path) {
  const std::string full = normal(path);
  const std::lock_guard lock(mutex_);
  if (!directories_.contains(full)) return io_error("listing of " + path, ENOENT);
  std::vector<std::string> names;
  const auto add = [&](const std::string& entry) {
    if (entry != full && parent_of_normal(entry) == full) {
      names.push_back(std::filesystem::path(entry).filename().string());
    }
  };
  for (const auto& [file, size] : files_) add(file);
  for (const std::string& directory : directories_) add(directory);
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
  return names;
}

Result<bool> NullFileSystem::exists(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return files_.contains(normal(path)) || directories_.contains(normal(path));
}

Result<void> NullFileSystem::rename(const std::string& from, const std::string& to) {
  const std::string what = "renaming of " + from + " to " + to;
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(normal(from));
  if (found == files_.end() || !directories_.contains(parent_of_normal(normal(to)))) {
    return io_error(what, ENOENT);
  }
  if (directories_.contains(normal(to))) return io_error(what, EISDIR);
  const uint64_t size = found->second;
  files_.erase(found);
  files_[normal(to)] = size;
  return {};
}

Result<void> NullFileSystem::remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (directories_.contains(normal(path))) return io_error("removal of " + path, EISDIR);
  if (files_.erase(normal(path)) == 0) return io_error("removal of " + path, ENOENT);
  return {};
}

}  // namespace

std::unique_ptr<FileSystem> make_null_file_system() { return std::make_unique<NullFileSystem>(); }

}  // namespace atolldb
