// Extracts the file and the error number from the text of a file error. Both can then be separate
// fields next to a message that other processes have passed on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace atolldb {

struct FileFailure {
  std::string file;
  int error_number = 0;
};

/// Returns the file and error number that io_error or path_error put into `message`. Returns
/// nothing if the message names no failed system call on a file.
std::optional<FileFailure> file_failure_in(std::string_view message);

/// Returns the path in the text of an operation: "/x/y" in "write of 8192 bytes at 4096 to /x/y".
/// For a renaming this is the new path. Empty if the text has no path.
std::string file_of_operation(std::string_view operation);

}  // namespace atolldb
