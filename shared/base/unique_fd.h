// An owner of a file descriptor, repetition of interrupted system calls, and reads of small files.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace atolldb {

/// A file descriptor with one owner. -1: none.
class UniqueFd {
 public:
  UniqueFd() = default;
  /// REQUIRES: fd is a descriptor or -1.
  explicit UniqueFd(int fd);
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

/// Repeats `call`, which returns like a system call, until it is not interrupted. Returns its
/// result: -1 and errno (never EINTR) on failure. Do not use it for a call with a timeout, because
/// the timeout would not shrink.
template <typename Call>
auto uninterrupted(Call&& call) {
  for (;;) {
    const auto answer = call();
    if (answer != -1 || errno != EINTR) return answer;
  }
}

/// Returns the text of the file, or an empty text if it cannot be opened. If a read fails, returns
/// what was read before. Reads of /proc/<pid> fail with ESRCH after the process has ended, even if
/// the file was opened earlier. C++ streams throw in that case.
std::string file_text(const std::string& path);

/// Returns the rest of an open file, from its position on.
std::string file_text(int file);

}  // namespace atolldb
