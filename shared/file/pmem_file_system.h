// Files on persistent memory, by libpmem2: the preallocated file is mapped, writes are copied past
// the caches, and a sync waits until they have drained. Neither needs the kernel.
//
//   granularity of the mapping    write                     sync
//   cache line, byte              non-temporal copies       drain
//   page (no persistent memory)   copies                    fdatasync
//
// libpmem2's own persist of pages is msync, and ends the process when that fails: fdatasync
// promises as much, and its error can be answered. libpmem2 takes the environment's
// PMEM2_FORCE_GRANULARITY=cache_line for granted: only for tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "shared/file/posix_file_system.h"

namespace atolldb {

/// On a file system that allocates anew on each write (copy on write), a full disk ends the process
/// with SIGBUS, as with every mapped file: use `posix` there.
class PmemFileSystem : public FileSystem {
 public:
  /// REQUIRES: `calls` outlives this object, and this object its files.
  explicit PmemFileSystem(FileWarning warn = {}, SystemCalls& calls = kernel_calls())
      : posix_(warn, calls), warn_(std::move(warn)), calls_(calls) {}

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    return posix_.open_for_reading(path);
  }
  Result<void> sync_directory(const std::string& path) override {
    return posix_.sync_directory(path);
  }
  Result<void> make_directory(const std::string& path) override {
    return posix_.make_directory(path);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return posix_.list(path);
  }
  Result<bool> exists(const std::string& path) override { return posix_.exists(path); }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return posix_.rename(from, to);
  }
  Result<void> remove(const std::string& path) override { return posix_.remove(path); }
  Result<void> forget_cached(const std::string& path) override {
    return posix_.forget_cached(path);
  }
  bool is_durable() const override { return true; }
  std::string describe() const override;

  /// Syncs that drained stores, and syncs through the kernel: which path runs.
  uint64_t drains() const { return drains_.load(std::memory_order_relaxed); }
  uint64_t kernel_syncs() const { return kernel_syncs_.load(std::memory_order_relaxed); }

 private:
  friend class PmemFile;

  enum class Granularity : uint8_t { none_yet, byte, cache_line, page };

  Result<std::unique_ptr<File>> map(const std::string& path, Descriptor descriptor);
  void found(Granularity granularity, const std::string& path);

  PosixFileSystem posix_;
  FileWarning warn_;
  SystemCalls& calls_;
  // Statistics: relaxed, nothing depends on them.
  std::atomic<uint64_t> drains_{0};
  std::atomic<uint64_t> kernel_syncs_{0};
  mutable std::mutex mutex_;
  Granularity coarsest_ = Granularity::none_yet;  // of all files so far
};

}  // namespace atolldb
