// A file system that measures the writes and syncs of created files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "shared/file/forwarding_file_system.h"

namespace atolldb::log_bench {

struct FileTimes {
  uint64_t write_ns = 0;
  uint64_t writes = 0;
  uint64_t sync_ns = 0;  // time to sync files
  uint64_t syncs = 0;
};

/// Thread: one. Files must not outlive this object.
class TimedFileSystem : public ForwardingFileSystem {
 public:
  explicit TimedFileSystem(std::unique_ptr<FileSystem> below)
      : ForwardingFileSystem(*below), owned_(std::move(below)) {}

  const FileTimes& times() const { return times_; }

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;

 private:
  std::unique_ptr<FileSystem> owned_;
  FileTimes times_;
};

}  // namespace atolldb::log_bench
