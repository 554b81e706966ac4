// Reads of many whole blocks at the same time. One thread submits the reads and waits for them one
// by one. A device serves several reads at once, so they take little longer than one.
//
// The reads are submitted through io_uring. If the kernel refuses it, a few threads read instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Thread: one, for all functions. Allocates no memory after its creation, unless a read fails.
class BatchReader {
 public:
  enum class Method : uint8_t {
    automatic,  // io_uring, or threads if the kernel refuses it
    threads,
  };
  /// Largest `depth`.
  static constexpr uint32_t kMaxDepth = 256;

  /// A read that has ended.
  struct Done {
    uint64_t tag = 0;
    /// Number of bytes read, which is less than requested only at the end of the file. Errors:
    /// those of File::read.
    Result<uint64_t> bytes;
  };

  /// `depth`: the maximum number of reads in progress, from 1 to kMaxDepth.
  static std::unique_ptr<BatchReader> create(uint32_t depth, Method method = Method::automatic);

  BatchReader() = default;
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;
  /// Waits for all reads in progress.
  virtual ~BatchReader() = default;

  /// Begins to read. Returns false, and does nothing, if the queue is full. The device may get the
  /// read only with the next call of `start` or `wait`. `tag`: any value, which `wait` returns.
  /// REQUIRES: offset, length and address are multiples of kIoBlockBytes, and the length is not 0.
  /// `file` and `into` stay valid until `wait` has returned the read.
  virtual bool submit(const File& file, uint64_t offset, std::span<std::byte> into,
                      uint64_t tag) = 0;
  /// Passes all submitted reads to the device. Never waits for one.
  virtual void start() = 0;
  /// Waits until a read has ended, in any order, and returns it. REQUIRES: pending() != 0.
  virtual Done wait() = 0;
  /// Returns the number of reads that `wait` has not returned yet.
  virtual uint32_t pending() const = 0;
  /// Returns "io_uring" or "threads".
  virtual const char* method() const = 0;
};

}  // namespace atolldb
