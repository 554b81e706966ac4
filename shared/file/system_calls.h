// System calls of file I/O as virtual functions, so that tests can make each of them fail or
// transfer less than requested. Also loops that repeat a call until all bytes are transferred. The
// backends on real files use both.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shared/base/error.h"
#include "shared/base/unique_fd.h"

namespace atolldb {

/// Each function returns what the system call of its name returns: -1 and errno on failure. The
/// base class calls the kernel. Thread-safe.
class SystemCalls {
 public:
  virtual ~SystemCalls() = default;

  virtual int open(const char* path, int flags, mode_t mode);
  virtual int fallocate(int descriptor, uint64_t bytes);
  virtual int ftruncate(int descriptor, uint64_t bytes);
  /// Returns 0 if no other open file of any process refers to this file. Otherwise returns -1 with
  /// errno EAGAIN, or with another errno if the file system cannot tell.
  virtual int check_sole_user(int descriptor);
  virtual ssize_t pwritev(int descriptor, const iovec* parts, int count, uint64_t offset);
  virtual ssize_t pread(int descriptor, void* into, uint64_t bytes, uint64_t offset);
  /// lseek(SEEK_DATA). Moves the position of the descriptor, which no other call uses.
  virtual int64_t seek_data(int descriptor, uint64_t offset);
  virtual int fdatasync(int descriptor);
  virtual int fsync(int descriptor);
  /// posix_fadvise(POSIX_FADV_DONTNEED) of the whole file. Returns an errno, or 0.
  virtual int drop_cached_pages(int descriptor);
  virtual int mkdir(const char* path, mode_t mode);
  virtual int rename(const char* from, const char* to);
  virtual int unlink(const char* path);
  virtual int link(const char* from, const char* to);
  virtual int rmdir(const char* path);
};

/// Returns the implementation that calls the kernel.
SystemCalls& kernel_calls();

/// Opens with O_CLOEXEC.
Result<UniqueFd> open_descriptor(SystemCalls& calls, const std::string& path, int flags);

/// Creates a file of `bytes` zeros with all blocks allocated, open for reading and writing through
/// the page cache. Returns an error if the file exists. Leaves no file after a failure.
Result<UniqueFd> create_preallocated(SystemCalls& calls, const std::string& path, uint64_t bytes);

/// Implements File::grow for a file of `size` bytes.
Result<void> grow_preallocated(SystemCalls& calls, int descriptor, const std::string& path,
                               uint64_t size, uint64_t bytes);

/// Writes all slices, in as many calls as needed. Returns the first errno, or 0. Offsets and
/// addresses of all calls are multiples of kIoBlockBytes, as direct I/O requires.
int write_all(SystemCalls& calls, int descriptor, uint64_t offset,
              std::span<const std::span<const std::byte>> slices);

/// Reads until `into` is full or the file ends. The first `done` bytes of `into` are already read.
Result<uint64_t> read_all(SystemCalls& calls, int descriptor, const std::string& path,
                          uint64_t offset, std::span<std::byte> into, uint64_t done = 0);

/// Reads whole blocks into `into`, as direct I/O requires, and sets `done` to the number of bytes
/// read. Stops at the end of the file, and after a partial block. Returns the first errno, or 0.
int read_blocks(SystemCalls& calls, int descriptor, uint64_t offset, std::span<std::byte> into,
                uint64_t& done);

/// Syncs the data of a file, and repeats the call if a signal interrupts it. Blocks all signals
/// meanwhile, because an interrupted sync could consume the kernel's only report of an error.
/// Returns an errno, or 0.
int sync_data(SystemCalls& calls, int descriptor);
/// Does the same as `sync_data`, but syncs data and metadata. Used for directories.
int sync_all(SystemCalls& calls, int descriptor);

Result<uint64_t> size_of(int descriptor, const std::string& path);

}  // namespace atolldb
