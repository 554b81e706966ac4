// File system that discards data, to measure the cost of a log without a device. It keeps names and
// sizes in this process, drops writes, and fails reads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "shared/file/file.h"

namespace atolldb {

/// REQUIRES: this object outlives its files.
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

}  // namespace atolldb
