// System calls that fail, or do less than asked, as a test selects.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "shared/file/system_calls.h"

namespace atolldb::test {

/// Counts system calls, and makes them fail or do less, as its members say. REQUIRES: all members
/// are set before the calls begin. Thread: one.
class FaultyCalls : public SystemCalls {
 public:
  uint64_t calls = 0;  ///< all calls, numbered from 1
  uint64_t reads_direct = 0, reads_buffered = 0;
  uint64_t opens_direct = 0, allocations = 0, writes = 0, syncs = 0, directory_syncs = 0;
  uint64_t most_parts = 0;  ///< largest number of parts of a write

  uint64_t fail_call = 0;  ///< number of the call that fails with `error`; 0: none
  int error = 0;
  uint64_t fail_write = 0;  ///< number of the write that fails
  uint64_t fail_sync = 0;   ///< number of the file sync that fails
  bool refuse_direct_open = false;
  bool refuse_direct_write = false;
  bool refuse_direct_read = false;
  uint64_t cut_direct_reads = 0;  ///< each read returns at most this many bytes; 0: no limit
  int allocation_error = 0;
  int seek_error = 0;                   ///< errno of every seek_data; 0: no error
  int64_t seek_answer = -1;             ///< result of every seek_data; -1: the system's result
  bool interrupt_every_second = false;  ///< interrupts only calls that can be repeated
  /// Not null: every second write is short by a random number of sectors.
  std::mt19937_64* cut_writes = nullptr;
  int64_t futile_write = -1;  ///< return value of every write; -1: writes work

  int open(const char* path, int flags, mode_t mode) override {
    if (fails(true)) return -1;
    if ((flags & O_DIRECT) != 0 && refuse_direct_open) return fail(EINVAL);
    const int descriptor = SystemCalls::open(path, flags, mode);
    if ((flags & O_DIRECT) != 0 && descriptor >= 0) {
      ++opens_direct;
      direct_ = descriptor;
    }
    return descriptor;
  }
  int fallocate(int descriptor, uint64_t bytes) override {
    ++allocations;
    if (fails(true)) return -1;
    return allocation_error != 0 ? fail(allocation_error)
                                 : SystemCalls::fallocate(descriptor, bytes);
  }
  int64_t seek_data(int descriptor, uint64_t offset) override {
    if (seek_answer >= 0) return seek_answer;
    return seek_error != 0 ? fail(seek_error) : SystemCalls::seek_data(descriptor, offset);
  }
  ssize_t pwritev(int descriptor, const iovec* parts, int count, uint64_t offset) override {
    ++writes;
    most_parts = std::max(most_parts, static_cast<uint64_t>(count));
    if (fails(true)) return -1;
    if (writes == fail_write) return fail(error);
    if (refuse_direct_write && descriptor == direct_) return fail(EINVAL);
    if (futile_write >= 0) return futile_write;
    if (cut_writes == nullptr || writes % 2 == 0)
      return SystemCalls::pwritev(descriptor, parts, count, offset);
    uint64_t total = 0;
    for (int index = 0; index < count; ++index) total += parts[index].iov_len;
    constexpr uint64_t kSector = 512;
    uint64_t left = ((*cut_writes)() % (total / kSector) + 1) * kSector;
    std::vector<iovec> cut;
    for (int index = 0; index < count && left > 0; ++index) {
      cut.push_back({parts[index].iov_base, std::min<uint64_t>(parts[index].iov_len, left)});
      left -= cut.back().iov_len;
    }
    return SystemCalls::pwritev(descriptor, cut.data(), static_cast<int>(cut.size()), offset);
  }
  ssize_t pread(int descriptor, void* into, uint64_t bytes, uint64_t offset) override {
    const bool is_direct = descriptor == direct_;
    ++(is_direct ? reads_direct : reads_buffered);
    if (fails(true)) return -1;
    if (is_direct && refuse_direct_read) return fail(EINVAL);
    if (is_direct && cut_direct_reads != 0) bytes = std::min(bytes, cut_direct_reads);
    return SystemCalls::pread(descriptor, into, bytes, offset);
  }
  int fdatasync(int descriptor) override {
    ++syncs;
    if (fails(true)) return -1;
    return syncs == fail_sync ? fail(error) : SystemCalls::fdatasync(descriptor);
  }
  int fsync(int descriptor) override {
    ++directory_syncs;
    return fails(true) ? -1 : SystemCalls::fsync(descriptor);
  }
  int mkdir(const char* path, mode_t mode) override {
    return fails(false) ? -1 : SystemCalls::mkdir(path, mode);
  }
  int rename(const char* from, const char* to) override {
    return fails(false) ? -1 : SystemCalls::rename(from, to);
  }
  int unlink(const char* path) override { return fails(false) ? -1 : SystemCalls::unlink(path); }

 private:
  static int fail(int number) {
    errno = number;
    return -1;
  }
  bool fails(bool is_repeatable) {
    ++calls;
    if (calls == fail_call) return fail(error) != 0;
    if (interrupt_every_second && is_repeatable && calls % 2 == 0) return fail(EINTR) != 0;
    return false;
  }

  int direct_ = -1;  // descriptor of the last direct open
};

}  // namespace atolldb::test
