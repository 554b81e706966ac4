#include "engine/snapshot/page_reader.h"

#include <algorithm>
#include <cstring>

namespace atolldb {

Result<void> PageReader::read(SnapshotPointer pointer, PageHeader* into) {
  const uint64_t word = pointer.word();
  const bool is_near = word > last_ && word - last_ <= kPages;  // so it is in the same file
  last_ = word;
  if (word - first_ >= count_) {
    if (!is_near) return files_.read(pointer, into);
    const uint64_t count = std::min<uint64_t>(kPages, files_.pages_from(pointer));
    count_ = 0;
    // If one of them is damaged it need not be the one that is wanted.
    if (count == 0 ||
        !files_.read_run(pointer, static_cast<uint32_t>(count), pages_.bytes().data())) {
      return files_.read(pointer, into);
    }
    first_ = word;
    count_ = count;
  }
  const std::byte* page = pages_.bytes().data() + (word - first_) * kPageBytes;
  std::memcpy(reinterpret_cast<std::byte*>(into), page, kPageBytes);
  return {};
}

}  // namespace atolldb
