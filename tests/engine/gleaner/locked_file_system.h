// Wrapper that makes a single-threaded file system thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "shared/file/forwarding_file_system.h"

namespace atolldb::test {

class LockedFileSystem : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override {
    const std::lock_guard lock(mutex_);
    return locked(below().create(path, bytes));
  }
  Result<std::unique_ptr<File>> open(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return locked(below().open(path));
  }
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return locked(below().open_for_reading(path));
  }
  Result<void> sync_directory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return below().sync_directory(path);
  }
  Result<void> make_directory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return below().make_directory(path);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return below().list(path);
  }
  Result<bool> exists(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return below().exists(path);
  }
  Result<void> remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return below().remove(path);
  }

 private:
  class LockedFile : public ForwardingFile {
   public:
    LockedFile(std::mutex& mutex, std::unique_ptr<File> below)
        : ForwardingFile(std::move(below)), mutex_(mutex) {}
    Result<void> write(uint64_t offset,
                       std::span<const std::span<const std::byte>> slices) override {
      const std::lock_guard lock(mutex_);
      return below().write(offset, slices);
    }
    Result<void> grow(uint64_t bytes) override {
      const std::lock_guard lock(mutex_);
      return below().grow(bytes);
    }
    Result<void> sync() override {
      const std::lock_guard lock(mutex_);
      return below().sync();
    }
    Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
      const std::lock_guard lock(mutex_);
      return below().read(offset, into);
    }
    Result<uint64_t> next_data(uint64_t offset) const override {
      const std::lock_guard lock(mutex_);
      return below().next_data(offset);
    }
    Result<uint64_t> size() const override {
      const std::lock_guard lock(mutex_);
      return below().size();
    }

   private:
    std::mutex& mutex_;
  };

  Result<std::unique_ptr<File>> locked(Result<std::unique_ptr<File>> file) {
    if (!file) return file;
    return std::make_unique<LockedFile>(mutex_, *std::move(file));
  }

  std::mutex mutex_;
};

}  // namespace atolldb::test
