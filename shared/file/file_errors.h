// What file operations answer when they are misused or fail. Used by every backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "shared/error.h"

namespace atolldb {

/// A failed system call as an error: disk_full for ENOSPC and EDQUOT, else durability. `what` names
/// operation, place and path: "write of 8192 bytes at 4096 to /x/y".
std::unexpected<Error> io_error(const std::string& what, int error_number);

/// "write of 8192 bytes at 4096 to /x/y"
std::string write_text(const std::string& path, uint64_t offset, uint64_t bytes);

/// "read of 8192 bytes at 4096 from /x/y"
std::string read_text(const std::string& path, uint64_t offset, uint64_t bytes);

uint64_t total_bytes(std::span<const std::span<const std::byte>> slices);

/// Misaligned slices, or slices beyond the file's `size`, are an error of the caller: durability.
/// Nothing is written then, and the file stays good.
Result<void> check_write(const std::string& path, uint64_t size, uint64_t offset,
                         std::span<const std::span<const std::byte>> slices);

/// The same for the size of a new file.
Result<void> check_create(const std::string& path, uint64_t bytes);

/// And for the size that a file of `size` bytes is to grow to: misaligned, or less than now.
Result<void> check_grow(const std::string& path, uint64_t size, uint64_t bytes);

/// Remembers the first failed write or sync of a file and answers it ever after: what a failed sync
/// left behind is unknown, and a second one that succeeds would claim what the first one lost.
/// Belongs to the one thread that writes the file.
class FirstFailure {
 public:
  /// Nothing, or the first failure.
  Result<void> check() const {
    if (!error_) return {};
    return std::unexpected(*error_);
  }
  /// Passes `result` on and keeps its error.
  Result<void> keep(Result<void> result) {
    if (!result && !error_) error_ = result.error();
    return result;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace atolldb
