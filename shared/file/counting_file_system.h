// File system that counts the bytes read from files opened for reading only. Another thread can
// then report the progress of a long read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "shared/base/try.h"
#include "shared/file/forwarding_file_system.h"

namespace atolldb {

class CountingFile final : public ForwardingFile {
 public:
  CountingFile(std::unique_ptr<File> below, std::atomic<uint64_t>& bytes_read)
      : ForwardingFile(std::move(below)), bytes_read_(bytes_read) {}

  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    auto count = ForwardingFile::read(offset, into);
    // Relaxed: for display only.
    if (count) bytes_read_.fetch_add(*count, std::memory_order_relaxed);
    return count;
  }

 private:
  std::atomic<uint64_t>& bytes_read_;
};

/// Base that owns the file system below. It is constructed before ForwardingFileSystem, which
/// refers to it.
struct FileSystemBelow {
  std::unique_ptr<FileSystem> owned;
};

/// Owns the file system below. REQUIRES: `bytes_read` outlives this object.
class CountingFileSystem final : private FileSystemBelow, public ForwardingFileSystem {
 public:
  CountingFileSystem(std::unique_ptr<FileSystem> below, std::atomic<uint64_t>& bytes_read)
      : FileSystemBelow{std::move(below)}, ForwardingFileSystem(*owned), bytes_read_(bytes_read) {}

  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    ATOLL_ASSIGN(auto file, ForwardingFileSystem::open_for_reading(path));
    return std::make_unique<CountingFile>(std::move(file), bytes_read_);
  }

 private:
  std::atomic<uint64_t>& bytes_read_;
};

}  // namespace atolldb
