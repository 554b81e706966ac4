#include "ops/backup/backup_copy.h"

#include <fmt/format.h>

#include <algorithm>

#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

Result<bool> have_equal_ends(FileSystem& file_system, const std::string& one,
                             const std::string& other, uint64_t bytes) {
  if (bytes < kIoBlockBytes) return false;
  ATOLL_ASSIGN(const auto first, file_system.open_for_reading(one));
  ATOLL_ASSIGN(const auto second, file_system.open_for_reading(other));
  IoBuffer of_first(kIoBlockBytes);
  IoBuffer of_second(kIoBlockBytes);
  for (const uint64_t offset : {uint64_t{0}, (bytes - 1) / kIoBlockBytes * kIoBlockBytes}) {
    ATOLL_ASSIGN(const uint64_t count, first->read(offset, of_first.bytes()));
    ATOLL_ASSIGN(const uint64_t other_count, second->read(offset, of_second.bytes()));
    if (count != other_count) return false;
    if (!std::ranges::equal(of_first.bytes().first(count), of_second.bytes().first(count))) {
      return false;
    }
  }
  return true;
}

Result<void> check_sum(const std::string& path, const FileSum& expected, const FileSum& found) {
  if (expected.bytes != found.bytes) {
    return make_error(ExitCode::corruption,
                      fmt::format("{}: has {} bytes, the manifest says {}: the backup is damaged: "
                                  "use another one",
                                  path, found.bytes, expected.bytes));
  }
  if (expected.crc32c != found.crc32c) {
    return make_error(ExitCode::corruption,
                      fmt::format("{}: has the CRC32C {:08x}, the manifest says {:08x}: the backup "
                                  "is damaged: use another one",
                                  path, found.crc32c, expected.crc32c));
  }
  return {};
}

}  // namespace atolldb
