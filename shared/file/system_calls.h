// Virtual functions for the system calls of file I/O, so that tests can make each of them fail or
// transfer less than requested.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>

namespace atolldb {

/// Each function returns what the system call of its name returns: -1 and errno on failure. The
/// base class calls the kernel. Thread-safe.
class SystemCalls {
 public:
  virtual ~SystemCalls() = default;

  virtual int open(const char* path, int flags, mode_t mode);
  virtual int fallocate(int descriptor, uint64_t bytes);
  virtual ssize_t pwritev(int descriptor, const iovec* parts, int count, uint64_t offset);
  virtual ssize_t pread(int descriptor, void* into, uint64_t bytes, uint64_t offset);
  virtual int fdatasync(int descriptor);
  virtual int fsync(int descriptor);
  /// posix_fadvise(POSIX_FADV_DONTNEED) of the whole file. Returns an errno, or 0.
  virtual int drop_cached_pages(int descriptor);
  virtual int mkdir(const char* path, mode_t mode);
  virtual int rename(const char* from, const char* to);
  virtual int unlink(const char* path);
};

/// Returns the implementation that calls the kernel.
SystemCalls& kernel_calls();

}  // namespace atolldb
