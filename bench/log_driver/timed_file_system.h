// Any file system, with the time that its writes and syncs of created files take.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shared/file/file.h"

namespace atolldb::log_bench {

struct FileTimes {
  uint64_t write_ns = 0;
  uint64_t writes = 0;
  uint64_t sync_ns = 0;  // of files
  uint64_t syncs = 0;
};

/// One thread's. Files must not outlive it.
class TimedFileSystem : public FileSystem {
 public:
  explicit TimedFileSystem(std::unique_ptr<FileSystem> below) : below_(std::move(below)) {}

  const FileTimes& times() const { return times_; }

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override {
    return below_->open(path);
  }
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    return below_->open_for_reading(path);
  }
  Result<void> sync_directory(const std::string& path) override {
    return below_->sync_directory(path);
  }
  Result<void> make_directory(const std::string& path) override {
    return below_->make_directory(path);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return below_->list(path);
  }
  Result<bool> exists(const std::string& path) override { return below_->exists(path); }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return below_->rename(from, to);
  }
  Result<void> remove(const std::string& path) override { return below_->remove(path); }
  bool is_durable() const override { return below_->is_durable(); }
  std::string describe() const override { return below_->describe(); }

 private:
  std::unique_ptr<FileSystem> below_;
  FileTimes times_;
};

}  // namespace atolldb::log_bench
