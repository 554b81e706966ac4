// Owner of a file descriptor, and loops around system calls that may transfer less than requested.
// Used by the backends on real files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shared/base/error.h"
#include "shared/file/system_calls.h"

namespace atolldb {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int release();

  int number_ = -1;
};

/// Opens with O_CLOEXEC.
Result<Descriptor> open_descriptor(SystemCalls& calls, const std::string& path, int flags);

/// Creates a file of `bytes` zeros with all blocks allocated, open for reading and writing through
/// the page cache. Returns an error if the file exists. Leaves no file after a failure.
Result<Descriptor> create_preallocated(SystemCalls& calls, const std::string& path, uint64_t bytes);

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

/// Reads whole blocks into the first `done` bytes of `into`, as direct I/O requires. Stops at the
/// end of the file, and after a partial block. Returns the first errno, or 0.
int read_blocks(SystemCalls& calls, int descriptor, uint64_t offset, std::span<std::byte> into,
                uint64_t& done);

/// Syncs the data of a file, and repeats the call if a signal interrupts it. Blocks signal handlers
/// meanwhile: an interrupted sync could consume the kernel's only report of an error. Returns an
/// errno, or 0.
int sync_data(SystemCalls& calls, int descriptor);
/// As sync_data, but syncs data and metadata. For directories.
int sync_all(SystemCalls& calls, int descriptor);

Result<uint64_t> size_of(int descriptor, const std::string& path);

}  // namespace atolldb
