#include "shared/file/system_calls.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file.h"
#include "shared/file/file_errors.h"

namespace atolldb {
namespace {

/// Only the cluster's user may access its data.
constexpr mode_t kFileMode = 0600;
/// Limit of consecutive calls that write less than one block each. At the limit write_all fails.
constexpr int kMaxFutileCalls = 16;

/// A position in a list of slices.
class Cursor {
 public:
  explicit Cursor(std::span<const std::span<const std::byte>> slices) : slices_(slices) {}

  /// Fills `parts` with the next slices for the kernel. Merges slices that are adjacent in memory.
  int fill(std::span<iovec> parts) const {
    size_t count = 0;
    size_t skipped = skipped_;
    for (const auto& slice : slices_) {
      auto* data = const_cast<std::byte*>(slice.data()) + skipped;  // pwritev only reads it
      CHECK(skipped <= slice.size());
      const size_t bytes = slice.size() - skipped;
      skipped = 0;
      if (bytes == 0) continue;
      if (count > 0 &&
          static_cast<std::byte*>(parts[count - 1].iov_base) + parts[count - 1].iov_len == data) {
        parts[count - 1].iov_len += bytes;
        continue;
      }
      if (count == parts.size()) break;
      parts[count++] = {data, bytes};
    }
    return static_cast<int>(count);
  }

  void advance(uint64_t bytes) {
    while (bytes > 0) {
      CHECK(!slices_.empty());
      const uint64_t part = std::min<uint64_t>(bytes, slices_.front().size() - skipped_);
      bytes -= part;
      skipped_ += part;
      CHECK(skipped_ <= slices_.front().size());
      if (skipped_ == slices_.front().size()) {
        slices_ = slices_.subspan(1);
        skipped_ = 0;
      }
    }
  }

 private:
  std::span<const std::span<const std::byte>> slices_;
  size_t skipped_ = 0;  // consumed bytes of the first slice
};

/// Blocks all signals of this thread during its lifetime.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

/// Writes zeros, for file systems that cannot preallocate: each write allocates its blocks.
int write_zeros(SystemCalls& calls, int descriptor, uint64_t from, uint64_t bytes) {
  CHECK(from < bytes);
  constexpr uint64_t kChunkBytes = 1 << 20;
  const std::vector<std::byte> zeros(std::min(bytes - from, kChunkBytes));
  for (uint64_t offset = from; offset < bytes; offset += kChunkBytes) {
    const std::span<const std::byte> slice(zeros.data(), std::min(kChunkBytes, bytes - offset));
    if (const int error = write_all(calls, descriptor, offset, {{slice}}); error != 0) return error;
  }
  return 0;
}

/// Allocates blocks for [0, bytes). REQUIRES: the blocks of [0, from) are allocated.
int allocate(SystemCalls& calls, int descriptor, uint64_t from, uint64_t bytes) {
  CHECK(from <= bytes);
  if (bytes == from) return 0;
  const int answer = uninterrupted([&] { return calls.fallocate(descriptor, bytes); });
  const int error = answer == 0 ? 0 : errno;
  const bool is_supported = error != EOPNOTSUPP && error != ENOSYS;
  return is_supported ? error : write_zeros(calls, descriptor, from, bytes);
}

/// Reads more of the file into `into`, whose first `done` bytes are filled. Stops when `into` is
/// full, at the end of the file, or when `done` is no multiple of `unit`. Returns an errno, or 0.
int read_on(SystemCalls& calls, int descriptor, uint64_t offset, std::span<std::byte> into,
            uint64_t unit, uint64_t& done) {
  CHECK(descriptor >= 0);
  CHECK(done <= into.size());
  while (done < into.size() && done % unit == 0) {
    const ssize_t got = uninterrupted([&] {
      return calls.pread(descriptor, into.data() + done, into.size() - done, offset + done);
    });
    if (got < 0) return errno;
    if (got == 0) break;
    CHECK(static_cast<uint64_t>(got) <= into.size() - done);
    done += static_cast<uint64_t>(got);
  }
  return 0;
}

}  // namespace

int SystemCalls::open(const char* path, int flags, mode_t mode) {
  return ::open(path, flags, mode);
}

int SystemCalls::fallocate(int descriptor, uint64_t bytes) {
  return ::fallocate(descriptor, 0, 0, static_cast<off_t>(bytes));
}

int SystemCalls::ftruncate(int descriptor, uint64_t bytes) {
  return ::ftruncate(descriptor, static_cast<off_t>(bytes));
}

int SystemCalls::check_sole_user(int descriptor) {
  // The kernel grants a write lease only to the sole user. If another process opens the file during
  // the lease, the kernel sends a signal. The default signal would end this process.
  if (::fcntl(descriptor, F_SETSIG, SIGURG) != 0) return -1;
  if (::fcntl(descriptor, F_SETLEASE, F_WRLCK) != 0) return -1;
  return ::fcntl(descriptor, F_SETLEASE, F_UNLCK);
}

ssize_t SystemCalls::pwritev(int descriptor, const iovec* parts, int count, uint64_t offset) {
  return ::pwritev(descriptor, parts, count, static_cast<off_t>(offset));
}

ssize_t SystemCalls::pread(int descriptor, void* into, uint64_t bytes, uint64_t offset) {
  return ::pread(descriptor, into, bytes, static_cast<off_t>(offset));
}

int64_t SystemCalls::seek_data(int descriptor, uint64_t offset) {
  return ::lseek(descriptor, static_cast<off_t>(offset), SEEK_DATA);
}

int SystemCalls::fdatasync(int descriptor) { return ::fdatasync(descriptor); }

int SystemCalls::fsync(int descriptor) { return ::fsync(descriptor); }

int SystemCalls::drop_cached_pages(int descriptor) {
  return ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
}

int SystemCalls::mkdir(const char* path, mode_t mode) { return ::mkdir(path, mode); }

int SystemCalls::rename(const char* from, const char* to) { return ::rename(from, to); }

int SystemCalls::unlink(const char* path) { return ::unlink(path); }

int SystemCalls::link(const char* from, const char* to) { return ::link(from, to); }

int SystemCalls::rmdir(const char* path) { return ::rmdir(path); }

SystemCalls& kernel_calls() {
  static SystemCalls calls;
  return calls;
}

Result<UniqueFd> open_descriptor(SystemCalls& calls, const std::string& path, int flags) {
  CHECK((flags & O_TRUNC) == 0);  // files are never overwritten
  CHECK((flags & O_CREAT) == 0 || (flags & O_EXCL) != 0);
  const int number =
      uninterrupted([&] { return calls.open(path.c_str(), flags | O_CLOEXEC, kFileMode); });
  if (number < 0) return io_error("opening " + path, errno);
  return UniqueFd(number);
}

Result<UniqueFd> create_preallocated(SystemCalls& calls, const std::string& path, uint64_t bytes) {
  ATOLL_TRY(check_create(path, bytes));
  // Do not use O_DIRECT: on a file system that refuses it, open fails but still creates the file.
  ATOLL_ASSIGN(auto descriptor, open_descriptor(calls, path, O_RDWR | O_CREAT | O_EXCL));
  const int error = allocate(calls, descriptor.get(), 0, bytes);
  if (error == 0) return descriptor;
  const bool is_removed = calls.unlink(path.c_str()) == 0;
  return io_error("creation of " + path + " with " + std::to_string(bytes) + " bytes" +
                      (is_removed ? "" : " (and it could not be removed again)"),
                  error);
}

Result<void> grow_preallocated(SystemCalls& calls, int descriptor, const std::string& path,
                               uint64_t size, uint64_t bytes) {
  CHECK(descriptor >= 0);
  ATOLL_TRY(check_grow(path, size, bytes));
  const int error = allocate(calls, descriptor, size, bytes);
  if (error == 0) return {};
  const bool is_cut = uninterrupted([&] { return calls.ftruncate(descriptor, size); }) == 0;
  return io_error("growth of " + path + " from " + std::to_string(size) + " to " +
                      std::to_string(bytes) + " bytes" +
                      (is_cut ? "" : " (and it could not be cut again)"),
                  error);
}

int write_all(SystemCalls& calls, int descriptor, uint64_t offset,
              std::span<const std::span<const std::byte>> slices) {
  CHECK(descriptor >= 0);
  std::array<iovec, IOV_MAX> parts;
  Cursor cursor(slices);
  uint64_t left = total_bytes(slices);
  int futile_calls = 0;
  while (left > 0) {
    const int count = cursor.fill(parts);
    CHECK(count > 0 && count <= IOV_MAX);
    const ssize_t written =
        uninterrupted([&] { return calls.pwritev(descriptor, parts.data(), count, offset); });
    if (written < 0) return errno;
    // Rounded down: a partly written block is written again, because its rest would be misaligned.
    const uint64_t done = static_cast<uint64_t>(written) / kIoBlockBytes * kIoBlockBytes;
    futile_calls = done == 0 ? futile_calls + 1 : 0;
    if (futile_calls == kMaxFutileCalls) return EIO;
    CHECK(done <= left);
    cursor.advance(done);
    offset += done;
    left -= done;
  }
  return 0;
}

Result<uint64_t> read_all(SystemCalls& calls, int descriptor, const std::string& path,
                          uint64_t offset, std::span<std::byte> into, uint64_t done) {
  const int error = read_on(calls, descriptor, offset, into, 1, done);
  if (error != 0) return io_error(read_text(path, offset, into.size()), error);
  return done;
}

int read_blocks(SystemCalls& calls, int descriptor, uint64_t offset, std::span<std::byte> into,
                uint64_t& done) {
  CHECK((offset | into.size() | reinterpret_cast<uintptr_t>(into.data())) % kIoBlockBytes == 0);
  done = 0;
  return read_on(calls, descriptor, offset, into, kIoBlockBytes, done);
}

int sync_data(SystemCalls& calls, int descriptor) {
  CHECK(descriptor >= 0);
  const BlockedSignals blocked;
  return uninterrupted([&] { return calls.fdatasync(descriptor); }) == 0 ? 0 : errno;
}

int sync_all(SystemCalls& calls, int descriptor) {
  CHECK(descriptor >= 0);
  const BlockedSignals blocked;
  return uninterrupted([&] { return calls.fsync(descriptor); }) == 0 ? 0 : errno;
}

Result<uint64_t> size_of(int descriptor, const std::string& path) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return io_error("size of " + path, errno);
  CHECK(status.st_size >= 0);
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace atolldb
