#include "shared/file/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "shared/file/io_buffer.h"

namespace atolldb {

Result<std::optional<std::string>> read_text_file(FileSystem& file_system,
                                                  const std::string& path) {
  auto exists = file_system.exists(path);
  if (!exists) return std::unexpected(exists.error());
  if (!*exists) return std::nullopt;
  auto file = file_system.open_for_reading(path);
  if (!file) return std::unexpected(file.error());
  auto size = (*file)->size();
  if (!size) return std::unexpected(size.error());
  if (*size > kMaxTextFileBytes) {
    return make_error(ExitCode::corruption,
                      fmt::format("{}: has {} bytes, more than the limit of {}: restore the file",
                                  path, *size, kMaxTextFileBytes));
  }
  std::string text(*size, '\0');
  auto count = (*file)->read(0, std::as_writable_bytes(std::span(text)));
  if (!count) return std::unexpected(count.error());
  text.resize(*count);
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
    if (auto removed = file_system.remove(next); !removed) return removed;
  }
  auto file = file_system.create(next, text.size());
  if (!file) return std::unexpected(file.error());
  const std::array<std::span<const std::byte>, 1> slices = {buffer.bytes().first(text.size())};
  if (auto written = (*file)->write(0, slices); !written) return written;
  if (auto synced = (*file)->sync(); !synced) return synced;
  if (auto renamed = file_system.rename(next, path); !renamed) return renamed;
  return file_system.sync_directory(path.substr(0, path.rfind('/')));
}

}  // namespace atolldb
