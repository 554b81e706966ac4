// Errors of failed or incorrect file operations, for every backend. Also extracts file and error
// number from an error message, because other processes pass on only the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/error.h"

namespace atolldb {

/// Returns a failed system call as an error: disk_full for ENOSPC and EDQUOT, else durability.
/// `what` names operation, place and path: "write of 8192 bytes at 4096 to /x/y".
std::unexpected<Error> io_error(const std::string& what, int error_number);

/// Returns text like "write of 8192 bytes at 4096 to /x/y".
std::string write_text(const std::string& path, uint64_t offset, uint64_t bytes);

/// Returns text like "read of 8192 bytes at 4096 from /x/y".
std::string read_text(const std::string& path, uint64_t offset, uint64_t bytes);

struct FileFailure {
  std::string file;
  int error_number = 0;
};

/// Returns the file and error number that io_error or path_error put into `message`. Returns
/// nothing if the message names no failed system call on a file.
std::optional<FileFailure> file_failure_in(std::string_view message);

/// Returns the path in the text of an operation: "/x/y" in "write of 8192 bytes at 4096 to /x/y".
/// For a renaming this is the new path. Returns "" if the text has no path.
std::string file_of_operation(std::string_view operation);

uint64_t total_bytes(std::span<const std::span<const std::byte>> slices);

/// Returns the error durability if a slice is misaligned or lies beyond the file's `size`. Both are
/// bugs of the caller. Such a write changes nothing, and the file stays usable.
Result<void> check_write(const std::string& path, uint64_t size, uint64_t offset,
                         std::span<const std::span<const std::byte>> slices);

/// Returns the error durability if the size of a new file is misaligned, which is a bug of the
/// caller.
Result<void> check_create(const std::string& path, uint64_t bytes);

/// Returns the error durability if the new size of a file of `size` bytes is misaligned, or smaller
/// than `size`. Both are bugs of the caller.
Result<void> check_grow(const std::string& path, uint64_t size, uint64_t bytes);

/// Keeps the first failed write or sync of a file, and returns it for all later calls. After a
/// failed sync the device's content is unknown. A second sync might succeed although the data of
/// the first one is lost. Thread: the writer of the file.
class FirstFailure {
 public:
  /// Returns the first failure, if there was one.
  Result<void> check() const {
    if (!error_) return {};
    return std::unexpected(*error_);
  }
  /// Returns `result`. Keeps its error if it is the first one.
  Result<void> keep(Result<void> result) {
    CHECK(result || result.error().code != ExitCode::success);
    if (!result && !error_) error_ = result.error();
    return result;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace atolldb
