#include "shared/file/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

Result<std::optional<std::string>> read_text_file(FileSystem& file_system,
                                                  const std::string& path) {
  ATOLL_ASSIGN(auto exists, file_system.exists(path));
  if (!exists) return std::nullopt;
  auto file = file_system.open_for_reading(path);
  if (!file) return std::unexpected(file.error());
  ATOLL_ASSIGN(auto size, (*file)->size());
  if (size > kMaxTextFileBytes) {
    return make_error(ExitCode::corruption,
                      fmt::format("{}: has {} bytes, more than the limit of {}: restore the file",
                                  path, size, kMaxTextFileBytes));
  }
  std::string text(size, '\0');
  ATOLL_ASSIGN(auto count, (*file)->read(0, std::as_writable_bytes(std::span(text))));
  text.resize(count);
  return text;
}

Result<void> replace_text_file(FileSystem& file_system, const std::string& path, std::string text) {
  if (text.size() > kMaxTextFileBytes) {
    return make_error(
        ExitCode::resources,
        fmt::format("{}: would have {} bytes, the limit is {}: name fewer directories", path,
                    text.size(), kMaxTextFileBytes));
  }
  text.resize((text.size() / kIoBlockBytes + 1) * kIoBlockBytes, '\n');
  IoBuffer buffer(text.size());
  std::ranges::copy(std::as_bytes(std::span(text)), buffer.bytes().begin());

  const std::string next = path + ".new";
  auto left = file_system.exists(next);  // left by a crash during a replacement
  if (!left) return std::unexpected(left.error());
  if (*left) {
    ATOLL_TRY(file_system.remove(next));
  }
  ATOLL_ASSIGN(auto file, file_system.create(next, text.size()));
  const std::array<std::span<const std::byte>, 1> slices = {buffer.bytes().first(text.size())};
  ATOLL_TRY(file->write(0, slices));
  ATOLL_TRY(file->sync());
  ATOLL_TRY(file_system.rename(next, path));
  return file_system.sync_directory(path.substr(0, path.rfind('/')));
}

}  // namespace atolldb
