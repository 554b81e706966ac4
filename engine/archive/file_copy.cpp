#include "engine/archive/file_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "engine/format/crc32c.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

/// Visits the file in parts of up to kHugePageBytes, in order, up to `size`.
template <typename Visit>
Result<void> for_each_part(const File& file, uint64_t size, const OnPart& on_part, Visit visit) {
  IoBuffer buffer(std::max<uint64_t>(std::min(size, kHugePageBytes), kIoBlockBytes));
  for (uint64_t offset = 0; offset < size;) {
    const uint64_t wanted = std::min<uint64_t>(size - offset, buffer.bytes().size());
    const uint64_t asked = std::min<uint64_t>(
        (wanted + kIoBlockBytes - 1) / kIoBlockBytes * kIoBlockBytes, buffer.bytes().size());
    ATOLL_ASSIGN(const uint64_t count, file.read(offset, buffer.bytes().first(asked)));
    if (count < wanted) {
      return make_error(ExitCode::corruption,
                        fmt::format("{}: ends at {}, it had {} bytes before: it was cut short "
                                    "meanwhile: try again",
                                    file.path(), offset + count, size));
    }
    ATOLL_TRY(visit(offset, buffer.bytes().first(wanted)));
    if (on_part) {
      ATOLL_TRY(on_part(buffer.bytes().first(wanted)));
    }
    offset += wanted;
  }
  return {};
}

bool is_all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{}; });
}

}  // namespace

Result<FileSum> sum_of_file(FileSystem& file_system, const std::string& path,
                            const OnPart& on_part) {
  ATOLL_ASSIGN(const auto file, file_system.open_for_reading(path));
  FileSum sum;
  ATOLL_ASSIGN(sum.bytes, file->size());
  const auto add = [&](uint64_t, std::span<const std::byte> part) -> Result<void> {
    sum.crc32c = crc32c(part, sum.crc32c);
    return {};
  };
  ATOLL_TRY(for_each_part(*file, sum.bytes, on_part, add));
  return sum;
}

Result<FileSum> copy_file(FileSystem& file_system, const std::string& from, const std::string& to,
                          const OnPart& on_part) {
  CHECK(from != to);
  ATOLL_ASSIGN(const auto source, file_system.open_for_reading(from));
  FileSum sum;
  ATOLL_ASSIGN(sum.bytes, source->size());
  if (sum.bytes % kIoBlockBytes != 0) {
    return make_error(ExitCode::corruption,
                      fmt::format("{}: has {} bytes, which is no multiple of {}: the file was cut "
                                  "short: restore it from a backup",
                                  from, sum.bytes, kIoBlockBytes));
  }
  ATOLL_ASSIGN(const auto target, file_system.create(to, sum.bytes));
  const auto copy = [&](uint64_t offset, std::span<const std::byte> part) -> Result<void> {
    CHECK(offset % kIoBlockBytes == 0 && part.size() % kIoBlockBytes == 0);
    sum.crc32c = crc32c(part, sum.crc32c);
    if (is_all_zero(part)) return {};
    const std::array<std::span<const std::byte>, 1> slices = {part};
    return target->write(offset, slices);
  };
  ATOLL_TRY(for_each_part(*source, sum.bytes, on_part, copy));
  ATOLL_TRY(target->sync());
  return sum;
}

}  // namespace atolldb
