// Files of an export: written under a temporary name, made durable, then renamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "shared/base/error.h"
#include "shared/base/unique_fd.h"

namespace atolldb {

struct PartSum {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;

  bool operator==(const PartSum&) const = default;
};

/// Thread: one.
class PartFile {
 public:
  /// Creates PATH.tmp, or empties the PATH.tmp that an earlier run has left. `reserve_bytes`: bytes
  /// that stay free on its file system.
  static Result<PartFile> create(const std::string& path, uint64_t reserve_bytes);

  /// Returns code disk_full or durability; the message names the file.
  Result<void> write(std::string_view text);
  /// Makes the file durable, then renames it to PATH. The new name is durable after a sync of its
  /// folder.
  Result<PartSum> finish();

 private:
  PartFile(std::string path, UniqueFd fd, uint64_t reserve_bytes)
      : path_(std::move(path)), fd_(std::move(fd)), reserve_bytes_(reserve_bytes) {}
  std::unexpected<Error> failed(const char* what, int error) const;

  std::string path_;
  UniqueFd fd_;
  uint64_t reserve_bytes_;
  PartSum sum_;
};

/// Reads the file and returns its sum. Returns the sum of no bytes if the file is missing.
Result<PartSum> sum_of_part(const std::string& path);

}  // namespace atolldb
