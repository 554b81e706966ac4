#include "shared/file/io_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/file/file.h"

namespace atolldb {
namespace {

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

void IoBuffer::Free::operator()(std::byte* bytes) const { std::free(bytes); }

IoBuffer::IoBuffer(uint64_t bytes) : bytes_(round_up(bytes, kIoBlockBytes)) {
  const bool is_large = bytes_ >= kHugePageBytes;
  const uint64_t alignment = is_large ? kHugePageBytes : kIoBlockBytes;
  const uint64_t size = round_up(bytes_, alignment);
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, size)));
  CHECK(memory_ != nullptr);
  CHECK(bytes_ >= bytes && size >= bytes_);
  if (is_large) madvise(memory_.get(), size, MADV_HUGEPAGE);  // a hint: failure is harmless
  std::memset(memory_.get(), 0, bytes_);
}

}  // namespace atolldb
