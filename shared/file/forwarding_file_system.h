// File system and file that forward their calls. Wrappers override only the calls that they change.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shared/base/check.h"
#include "shared/file/file.h"

namespace atolldb {

/// Does not forward raw reads, so readers call `read`, which a wrapper may override.
class ForwardingFile : public File {
 public:
  explicit ForwardingFile(std::unique_ptr<File> below) : below_(std::move(below)) {
    CHECK(below_ != nullptr);
  }

  Result<void> write(uint64_t offset, std::span<const std::span<const std::byte>> slices) override {
    return below_->write(offset, slices);
  }
  Result<void> grow(uint64_t bytes) override { return below_->grow(bytes); }
  Result<void> sync() override { return below_->sync(); }
  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    return below_->read(offset, into);
  }
  Result<uint64_t> next_data(uint64_t offset) const override { return below_->next_data(offset); }
  Result<uint64_t> size() const override { return below_->size(); }
  const std::string& path() const override { return below_->path(); }

 protected:
  File& below() { return *below_; }
  const File& below() const { return *below_; }

 private:
  std::unique_ptr<File> below_;
};

/// REQUIRES: `below` outlives this object.
class ForwardingFileSystem : public FileSystem {
 public:
  explicit ForwardingFileSystem(FileSystem& below) : below_(below) {}

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override {
    return below_.create(path, bytes);
  }
  Result<std::unique_ptr<File>> open(const std::string& path) override { return below_.open(path); }
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    return below_.open_for_reading(path);
  }
  Result<void> sync_directory(const std::string& path) override {
    return below_.sync_directory(path);
  }
  Result<void> make_directory(const std::string& path) override {
    return below_.make_directory(path);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return below_.list(path);
  }
  Result<bool> exists(const std::string& path) override { return below_.exists(path); }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return below_.rename(from, to);
  }
  Result<void> remove(const std::string& path) override { return below_.remove(path); }
  void finish_removals() override { below_.finish_removals(); }
  Result<bool> link(const std::string& from, const std::string& to) override {
    return below_.link(from, to);
  }
  Result<void> remove_directory(const std::string& path) override {
    return below_.remove_directory(path);
  }
  Result<void> forget_cached(const std::string& path) override {
    return below_.forget_cached(path);
  }
  bool is_durable() const override { return below_.is_durable(); }
  std::string describe() const override { return below_.describe(); }

 protected:
  FileSystem& below() const { return below_; }

 private:
  FileSystem& below_;
};

}  // namespace atolldb
