// A file descriptor that is closed with its owner, and the loops around system calls that may do
// less than was asked. Used by the backends on real files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shared/error.h"
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

/// A new file of `bytes` zeros with all its blocks, open for reading and writing through the page
/// cache; an error if it exists. Leaves no file behind when it fails.
Result<Descriptor> create_preallocated(SystemCalls& calls, const std::string& path, uint64_t bytes);

/// File::grow of a file of `size` bytes.
Result<void> grow_preallocated(SystemCalls& calls, int descriptor, const std::string& path,
                               uint64_t size, uint64_t bytes);

/// Writes all slices, however short the single calls are. The first `errno`, or 0.
/// Offsets and addresses of all calls are multiples of kIoBlockBytes, as direct I/O wants it.
int write_all(SystemCalls& calls, int descriptor, uint64_t offset,
              std::span<const std::span<const std::byte>> slices);

/// Reads until `into` is full or the file ends; its first `done` bytes are there already.
Result<uint64_t> read_all(SystemCalls& calls, int descriptor, const std::string& path,
                          uint64_t offset, std::span<std::byte> into, uint64_t done = 0);

/// Reads whole blocks into the first `done` bytes of `into`, as direct I/O wants it; stops where
/// the file ends, and behind a part of a block. The first `errno`, or 0.
int read_blocks(SystemCalls& calls, int descriptor, uint64_t offset, std::span<std::byte> into,
                uint64_t& done);

/// Syncs the data of a file; made again when a signal interrupts it. Handlers of signals do not run
/// meanwhile: a sync that is interrupted could have used up the kernel's only report of an error.
/// An errno, or 0.
int sync_data(SystemCalls& calls, int descriptor);
/// The same of data and metadata: of directories.
int sync_all(SystemCalls& calls, int descriptor);

Result<uint64_t> size_of(int descriptor, const std::string& path);

}  // namespace atolldb
