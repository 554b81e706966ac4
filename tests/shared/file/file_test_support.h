// Support for the tests of files: temporary folders, blocks with content, and failing calls.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "shared/file/file.h"

namespace atolldb::test {

/// A new folder below `parent`. The destructor removes it with its content.
class FileFolder {
 public:
  explicit FileFolder(const std::string& parent = std::filesystem::temp_directory_path()) {
    std::string pattern = parent + "/atoll-file-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  FileFolder(const FileFolder&) = delete;
  FileFolder& operator=(const FileFolder&) = delete;
  ~FileFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Whole blocks, aligned for direct I/O.
class Blocks {
 public:
  explicit Blocks(uint64_t count, uint8_t fill = 0)
      : size_(count * kIoBlockBytes),
        data_(static_cast<std::byte*>(::operator new(size_, std::align_val_t{kIoBlockBytes}))) {
    std::fill_n(data_.get(), size_, std::byte{fill});
  }
  Blocks(uint64_t count, std::mt19937_64& random) : Blocks(count) {
    for (std::byte& byte : bytes()) byte = static_cast<std::byte>(random());
  }
  std::span<std::byte> bytes() const { return {data_.get(), size_}; }
  std::span<const std::byte> block(uint64_t index) const {
    return bytes().subspan(index * kIoBlockBytes, kIoBlockBytes);
  }

 private:
  struct Deleter {
    void operator()(std::byte* data) const {
      ::operator delete(data, std::align_val_t{kIoBlockBytes});
    }
  };
  size_t size_;
  std::unique_ptr<std::byte, Deleter> data_;
};

/// Returns the number of open descriptors of this process.
inline size_t open_descriptors() {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

inline Result<void> write(File& file, uint64_t offset, std::span<const std::byte> bytes) {
  return file.write(offset, std::span(&bytes, 1));
}

/// Returns all bytes of a file. Adds a failure if they cannot be read.
inline std::vector<std::byte> content(const File& file) {
  const auto size = file.size();
  EXPECT_TRUE(size) << size.error().message;
  std::vector<std::byte> bytes(size.value_or(0));
  const auto got = file.read(0, bytes);
  EXPECT_TRUE(got) << got.error().message;
  EXPECT_EQ(got.value_or(0), bytes.size());
  return bytes;
}

inline std::vector<std::byte> content(FileSystem& files, const std::string& path) {
  const auto file = files.open_for_reading(path);
  EXPECT_TRUE(file) << file.error().message;
  return file ? content(**file) : std::vector<std::byte>{};
}

}  // namespace atolldb::test
