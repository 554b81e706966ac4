#include "shared/file/system_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace atolldb {

int SystemCalls::open(const char* path, int flags, mode_t mode) {
  return ::open(path, flags, mode);
}

int SystemCalls::fallocate(int descriptor, uint64_t bytes) {
  return ::fallocate(descriptor, 0, 0, static_cast<off_t>(bytes));
}

ssize_t SystemCalls::pwritev(int descriptor, const iovec* parts, int count, uint64_t offset) {
  return ::pwritev(descriptor, parts, count, static_cast<off_t>(offset));
}

ssize_t SystemCalls::pread(int descriptor, void* into, uint64_t bytes, uint64_t offset) {
  return ::pread(descriptor, into, bytes, static_cast<off_t>(offset));
}

int SystemCalls::fdatasync(int descriptor) { return ::fdatasync(descriptor); }

int SystemCalls::fsync(int descriptor) { return ::fsync(descriptor); }

int SystemCalls::drop_cached_pages(int descriptor) {
  return ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
}

int SystemCalls::mkdir(const char* path, mode_t mode) { return ::mkdir(path, mode); }

int SystemCalls::rename(const char* from, const char* to) { return ::rename(from, to); }

int SystemCalls::unlink(const char* path) { return ::unlink(path); }

SystemCalls& kernel_calls() {
  static SystemCalls calls;
  return calls;
}

}  // namespace atolldb
