// File system on persistent memory, with libpmem2. A preallocated file is mapped. Writes bypass the
// caches, and a sync waits until they have drained. On persistent memory neither enters the kernel.
//
//   granularity of the mapping    write                     sync         read (files for reading)
//   cache line, byte              non-temporal copies       drain        copies
//   page (no persistent memory)   copies                    fdatasync    pread
//
// Logs and snapshots use it alike. Files with known bad blocks are read by pread, which reports
// them as errors. A block that becomes bad later ends the process with SIGBUS when it is read; the
// kernel then knows it, so after the restart its reads are errors.
//
// libpmem2 persists pages by msync, and ends the process if that fails. fdatasync gives the same
// guarantee, and its error can be handled. libpmem2 trusts PMEM2_FORCE_GRANULARITY=cache_line in
// the environment; that is for tests only.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "shared/file/posix_file_system.h"

namespace atolldb {

/// A copy-on-write file system allocates blocks on each write. On a full disk, a write to a mapped
/// file then ends the process with SIGBUS. Use `posix` on such a file system.
class PmemFileSystem : public FileSystem {
 public:
  /// REQUIRES: `calls` outlives this object, and this object outlives its files.
  explicit PmemFileSystem(FileWarning warn = {}, SystemCalls& calls = kernel_calls())
      : posix_(warn, calls), warn_(std::move(warn)), calls_(calls) {}

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override;
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
  Result<bool> link(const std::string& from, const std::string& to) override {
    return posix_.link(from, to);
  }
  void finish_removals() override { posix_.finish_removals(); }
  Result<void> remove_directory(const std::string& path) override {
    return posix_.remove_directory(path);
  }
  Result<void> forget_cached(const std::string& path) override {
    return posix_.forget_cached(path);
  }
  bool is_durable() const override { return true; }
  std::string describe() const override;

  /// Number of syncs that drained stores, and number of syncs through the kernel.
  uint64_t drains() const { return drains_.load(std::memory_order_relaxed); }
  uint64_t kernel_syncs() const { return kernel_syncs_.load(std::memory_order_relaxed); }
  /// Number of reads that copied from a mapping.
  uint64_t mapped_reads() const { return mapped_reads_.load(std::memory_order_relaxed); }

 private:
  friend class PmemFile;

  enum class Granularity : uint8_t { none_yet, byte, cache_line, page };

  Result<std::unique_ptr<File>> map(const std::string& path, UniqueFd descriptor);
  void found(Granularity granularity, const std::string& path);

  PosixFileSystem posix_;
  FileWarning warn_;
  SystemCalls& calls_;
  // Statistics. Accesses are relaxed, because nothing depends on them.
  std::atomic<uint64_t> drains_{0};
  std::atomic<uint64_t> kernel_syncs_{0};
  std::atomic<uint64_t> mapped_reads_{0};
  mutable std::mutex mutex_;
  Granularity coarsest_ = Granularity::none_yet;  // coarsest granularity of all files so far
};

}  // namespace atolldb
