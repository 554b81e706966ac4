// Finds the file and the error number in the text of a file error, so that both can travel as
// fields beside a message that went through other processes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace atolldb {

struct FileFailure {
  std::string file;
  int error_number = 0;
};

/// Returns what io_error or path_error put into `message`; nothing if the message tells of no
/// failed system call on a file.
std::optional<FileFailure> file_failure_in(std::string_view message);

/// The path in the text of an operation: "/x/y" in "write of 8192 bytes at 4096 to /x/y". Of a
/// renaming the new one. Empty: none.
std::string file_of_operation(std::string_view operation);

}  // namespace atolldb
