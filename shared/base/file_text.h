// Reads small files whole, those of the kernel included.
#pragma once

#include <string>

namespace atolldb {

/// Returns the text of the file, or an empty text if it cannot be opened. Returns what was read if
/// a read fails: a file of /proc/<pid> fails with ESRCH as soon as the process has ended, also
/// between its opening and its reading. Streams throw then.
std::string file_text(const std::string& path);

/// The same, from the position of an open file on.
std::string file_text(int file);

}  // namespace atolldb
