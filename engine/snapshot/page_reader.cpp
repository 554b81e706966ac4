#include "engine/snapshot/page_reader.h"

#include <algorithm>
#include <cstring>

#include "shared/base/try.h"

namespace atolldb {

Result<void> PageReader::read(SnapshotPointer pointer, PageHeader* into) {
  const uint64_t word = pointer.word();
  const bool is_near = word > last_ && word - last_ <= kPagesPerRead;
  last_ = word;
  if (word - first_ >= count_) {
    count_ = 0;
    if (!is_near) return files_.read(pointer, into);
    ATOLL_ASSIGN(const auto read, files_.read_ahead(pointer, kPagesPerRead, pages_.bytes().data()));
    first_ = word;
    count_ = read;
  }
  const std::byte* page = pages_.bytes().data() + (word - first_) * kPageBytes;
  std::memcpy(reinterpret_cast<std::byte*>(into), page, kPageBytes);
  return {};
}

}  // namespace atolldb
