#include "shared/base/unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "shared/base/check.h"

namespace atolldb {

// Not inline: applications include unique_fd.h, and must not get the macros of check.h from it.
UniqueFd::UniqueFd(int fd) : fd_(fd) { CHECK(fd >= -1); }

std::string file_text(const std::string& path) {
  const UniqueFd file(
      uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY); }));
  return file.is_open() ? file_text(file.get()) : "";
}

std::string file_text(int file) {
  CHECK(file >= 0);
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t count = uninterrupted([&] { return read(file, part.data(), part.size()); });
    if (count <= 0) return text;
    CHECK(static_cast<size_t>(count) <= part.size());
    text.append(part.data(), static_cast<size_t>(count));
  }
}

}  // namespace atolldb
