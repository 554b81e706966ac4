// In-memory file system: writes are visible at once, and a test may change the bytes of a file.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "shared/base/check.h"
#include "shared/file/file.h"

namespace atolldb::test {

class MemoryFileSystem : public FileSystem {
 public:
  using Bytes = std::vector<std::byte>;

  /// Returns the bytes of a file, which the test may change. REQUIRES: the file exists (checked).
  Bytes& bytes(const std::string& path) {
    CHECK(files_.contains(path));
    return *files_.at(path);
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> all;
    for (const auto& [path, bytes] : files_) all.push_back(path);
    return all;
  }
  /// Returns a copy of all files. Files opened in the copy do not share bytes with this object.
  std::unique_ptr<MemoryFileSystem> copy() const {
    auto other = std::make_unique<MemoryFileSystem>();
    for (const auto& [path, bytes] : files_) other->files_[path] = std::make_shared<Bytes>(*bytes);
    other->directories_ = directories_;
    return other;
  }

  uint64_t writes = 0;
  uint64_t syncs = 0;
  /// This many changes (writes, syncs, creations, renames ...) succeed; all later ones fail.
  uint64_t changes_left = UINT64_MAX;

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t size) override {
    if (!directories_.contains(path.substr(0, path.rfind('/')))) return missing(path);
    if (files_.contains(path)) return make_error(ExitCode::failed, path + ": exists");
    if (!change()) return refused(path);
    files_[path] = std::make_shared<Bytes>(size);
    return open(path);
  }
  Result<std::unique_ptr<File>> open(const std::string& path) override {
    if (!files_.contains(path)) return missing(path);
    return std::make_unique<MemoryFile>(*this, path, files_.at(path));
  }
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    return open(path);
  }
  Result<void> sync_directory(const std::string& path) override {
    if (!directories_.contains(path)) return missing(path);
    if (!change()) return refused(path);
    return {};
  }
  Result<void> make_directory(const std::string& path) override {
    for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
      directories_.insert(path.substr(0, end));
    }
    if (directories_.contains(path)) return {};
    if (!change()) return refused(path);
    directories_.insert(path);
    return {};
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    if (!directories_.contains(path)) return missing(path);
    std::set<std::string> names;
    const auto add = [&](const std::string& below) {
      if (below.starts_with(path + "/") && below.find('/', path.size() + 1) == std::string::npos) {
        names.insert(below.substr(path.size() + 1));
      }
    };
    for (const auto& [file, bytes] : files_) add(file);
    for (const std::string& directory : directories_) add(directory);
    return std::vector<std::string>(names.begin(), names.end());
  }
  Result<bool> exists(const std::string& path) override {
    return files_.contains(path) || directories_.contains(path);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    if (!files_.contains(from)) return missing(from);
    if (!directories_.contains(to.substr(0, to.rfind('/')))) return missing(to);
    if (!change()) return refused(from);
    files_[to] = files_.at(from);
    files_.erase(from);
    return {};
  }
  Result<void> remove(const std::string& path) override {
    if (!change()) return refused(path);
    if (files_.erase(path) == 0) return missing(path);
    return {};
  }
  Result<bool> link(const std::string& from, const std::string& to) override {
    if (!files_.contains(from)) return missing(from);
    if (!directories_.contains(to.substr(0, to.rfind('/')))) return missing(to);
    if (files_.contains(to)) return make_error(ExitCode::failed, to + ": exists");
    if (!change()) return refused(to);
    files_[to] = files_.at(from);
    return true;
  }
  Result<void> remove_directory(const std::string& path) override {
    if (!directories_.contains(path)) return missing(path);
    const auto names = list(path);
    if (names && !names->empty()) return make_error(ExitCode::failed, path + ": is not empty");
    if (!change()) return refused(path);
    directories_.erase(path);
    return {};
  }
  bool is_durable() const override { return false; }
  std::string describe() const override { return "memory, for tests"; }

 private:
  class MemoryFile : public File {
   public:
    MemoryFile(MemoryFileSystem& owner, std::string path, std::shared_ptr<Bytes> bytes)
        : owner_(&owner), path_(std::move(path)), bytes_(std::move(bytes)) {}

    Result<void> write(uint64_t offset,
                       std::span<const std::span<const std::byte>> slices) override {
      if (!owner_->change()) return refused(path_);
      ++owner_->writes;
      CHECK(offset % kIoBlockBytes == 0);
      for (const std::span<const std::byte> slice : slices) {
        if (slice.empty()) continue;
        CHECK(reinterpret_cast<uintptr_t>(slice.data()) % kIoBlockBytes == 0);
        CHECK(slice.size() % kIoBlockBytes == 0 && offset + slice.size() <= bytes_->size());
        std::memcpy(bytes_->data() + offset, slice.data(), slice.size());
        offset += slice.size();
      }
      return {};
    }
    Result<void> grow(uint64_t bytes) override {
      if (!owner_->change()) return refused(path_);
      CHECK(bytes % kIoBlockBytes == 0 && bytes >= bytes_->size());
      bytes_->resize(bytes);
      return {};
    }
    Result<void> sync() override {
      if (!owner_->change()) return refused(path_);
      ++owner_->syncs;
      return {};
    }
    Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
      if (offset >= bytes_->size()) return 0;
      const uint64_t count = std::min<uint64_t>(into.size(), bytes_->size() - offset);
      std::memcpy(into.data(), bytes_->data() + offset, count);
      return count;
    }
    Result<uint64_t> size() const override { return bytes_->size(); }
    const std::string& path() const override { return path_; }

   private:
    MemoryFileSystem* owner_;
    std::string path_;
    std::shared_ptr<Bytes> bytes_;
  };

  bool change() {
    if (changes_left == 0) return false;
    --changes_left;
    return true;
  }
  static std::unexpected<Error> missing(const std::string& path) {
    return make_error(ExitCode::failed, path + ": no such file or directory");
  }
  static std::unexpected<Error> refused(const std::string& path) {
    return make_error(ExitCode::durability, path + ": input/output error");
  }

  std::map<std::string, std::shared_ptr<Bytes>> files_;
  std::set<std::string> directories_;
};

}  // namespace atolldb::test
