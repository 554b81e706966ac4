// The mapping of a segment in this process, by boost::interprocess::mapped_region. Only
// mapped_segment.cpp includes Boost's headers, because they are slow to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "shared/base/error.h"

namespace boost::interprocess {
class mapped_region;
}

namespace atolldb {

/// A mapping of a segment file. The processes that map the file share its memory. The destructor
/// unmaps it.
class MappedSegment {
 public:
  /// Maps the first `bytes` of `file`. The caller keeps the descriptor, and may close it.
  /// `address`: the start of the mapping, or null if the kernel chooses it. Error: code resources,
  /// also if the range at `address` is in use. The message has only the text of strerror.
  static Result<MappedSegment> map(int file, uint64_t bytes, bool writable,
                                   const void* address = nullptr);
  MappedSegment(MappedSegment&& other) noexcept;
  MappedSegment& operator=(MappedSegment&& other) noexcept;
  ~MappedSegment();

  std::byte* base() const;
  uint64_t bytes() const;

 private:
  explicit MappedSegment(std::unique_ptr<boost::interprocess::mapped_region> region);

  std::unique_ptr<boost::interprocess::mapped_region> region_;
};

}  // namespace atolldb
