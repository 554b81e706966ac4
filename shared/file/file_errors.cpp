#include "shared/file/file_errors.h"

#include <cerrno>

#include "shared/base/check.h"
#include "shared/base/path_errors.h"
#include "shared/file/file.h"

namespace atolldb {
namespace {

const char* way_out(int error_number) {
  switch (error_number) {
    case ENOSPC:
      return "free space on its file system, or configure a directory on another one";
    case EDQUOT:
      return "raise the user's disk quota, or free space within it";
    case EFBIG:
      return "raise the limit of file sizes (ulimit -f), or choose smaller files";
    case EACCES:
    case EPERM:
    case EROFS:
      return "give this user write access to it, or configure another directory";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    case ENOENT:
    case ENOTDIR:
      return "check the configured directories";
    case EEXIST:
      return "files are never overwritten: move the existing one away";
    default:
      return "check the device and the kernel's log (dmesg), then restart to recover";
  }
}

constexpr int kLastErrorNumber = 133;  // EHWPOISON

struct FoundText {
  size_t at = std::string_view::npos;
  int error_number = 0;
};

/// Finds the first text of an errno in the message. The text must follow ": ", and must end the
/// message or be followed by ":" or " (".
FoundText find_error_text(std::string_view message) {
  FoundText first;
  for (int number = 1; number <= kLastErrorNumber; ++number) {
    const std::string text = ": " + error_text(number);
    for (size_t at = message.find(text); at < first.at; at = message.find(text, at + 1)) {
      const std::string_view after = message.substr(at + text.size());
      if (!after.empty() && after.front() != ':' && !after.starts_with(" (")) continue;
      first = {at, number};
      break;
    }
  }
  return first;
}

/// Removes a part with numbers from the end of a path. Returns "/x/y" for "/x/y with 8 bytes",
/// "/x/y from 0 to 8 bytes" and "/x/y (0 to 8)".
std::string_view without_numbers(std::string_view path) {
  for (const std::string_view opening : {" with ", " from ", " ("}) {
    const size_t at = path.rfind(opening);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = path.substr(at + opening.size());
    if (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') path = path.substr(0, at);
  }
  return path;
}

}  // namespace

std::unexpected<Error> io_error(const std::string& what, int error_number) {
  CHECK(error_number > 0);
  const std::string file = file_of_operation(what);
  std::string detail;
  if (is_disk_full(error_number)) detail = room_text(file);
  if (is_refusal(error_number)) detail = refusal_text(file);
  if (!detail.empty()) detail = " (" + detail + ")";
  return make_error(is_disk_full(error_number) ? ExitCode::disk_full : ExitCode::durability,
                    what + ": " + error_text(error_number) + detail + ": " + way_out(error_number));
}

std::string write_text(const std::string& path, uint64_t offset, uint64_t bytes) {
  return "write of " + std::to_string(bytes) + " bytes at " + std::to_string(offset) + " to " +
         path;
}

std::string read_text(const std::string& path, uint64_t offset, uint64_t bytes) {
  return "read of " + std::to_string(bytes) + " bytes at " + std::to_string(offset) + " from " +
         path;
}

std::string file_of_operation(std::string_view operation) {
  const size_t begin = operation.find('/');
  if (begin == std::string_view::npos) return "";
  std::string_view path = operation.substr(begin);
  if (const size_t removed = path.find(" (and it could not be "); removed != path.npos) {
    path = path.substr(0, removed);
  }
  if (operation.starts_with("renaming of ")) {
    const size_t to = path.find(" to /");
    if (to != std::string_view::npos) return std::string(path.substr(to + 4));
  }
  path = without_numbers(path);
  CHECK(path.starts_with('/'));
  return std::string(path);
}

std::optional<FileFailure> file_failure_in(std::string_view message) {
  const FoundText error = find_error_text(message);
  if (error.at == std::string_view::npos) return std::nullopt;
  CHECK(error.at < message.size() && error.error_number > 0);
  std::string_view before = message.substr(0, error.at);
  // Searches the parts of "cluster: node0: sync of /x/y" from the end for one that contains a path.
  while (!before.empty()) {
    const size_t colon = before.rfind(": ");
    const std::string_view part = colon == before.npos ? before : before.substr(colon + 2);
    std::string file = file_of_operation(part);
    if (!file.empty()) return FileFailure{std::move(file), error.error_number};
    if (colon == before.npos) break;
    before = before.substr(0, colon);
  }
  return std::nullopt;
}

uint64_t total_bytes(std::span<const std::span<const std::byte>> slices) {
  uint64_t bytes = 0;
  for (const auto& slice : slices) {
    CHECK(slice.empty() || slice.data() != nullptr);
    bytes += slice.size();
  }
  return bytes;
}

Result<void> check_write(const std::string& path, uint64_t size, uint64_t offset,
                         std::span<const std::span<const std::byte>> slices) {
  bool is_aligned = offset % kIoBlockBytes == 0;
  for (const auto& slice : slices) {
    is_aligned = is_aligned && slice.size() % kIoBlockBytes == 0 &&
                 reinterpret_cast<uintptr_t>(slice.data()) % kIoBlockBytes == 0;
  }
  const uint64_t bytes = total_bytes(slices);
  if (!is_aligned) {
    return make_error(ExitCode::durability,
                      write_text(path, offset, bytes) +
                          ": offset, addresses and lengths must be multiples of " +
                          std::to_string(kIoBlockBytes) + ": internal error of the caller");
  }
  if (offset > size || bytes > size - offset) {
    return make_error(ExitCode::durability,
                      write_text(path, offset, bytes) + ": the file has " + std::to_string(size) +
                          " bytes and does not grow: internal error of the caller");
  }
  return {};
}

Result<void> check_create(const std::string& path, uint64_t bytes) {
  if (bytes % kIoBlockBytes == 0) return {};
  return make_error(ExitCode::durability, "creation of " + path + " with " + std::to_string(bytes) +
                                              " bytes: the size must be a multiple of " +
                                              std::to_string(kIoBlockBytes) +
                                              ": internal error of the caller");
}

Result<void> check_grow(const std::string& path, uint64_t size, uint64_t bytes) {
  if (bytes % kIoBlockBytes == 0 && bytes >= size) return {};
  return make_error(ExitCode::durability,
                    "growth of " + path + " from " + std::to_string(size) + " to " +
                        std::to_string(bytes) + " bytes: the size must be a multiple of " +
                        std::to_string(kIoBlockBytes) +
                        " and never less than before: internal error of the caller");
}

}  // namespace atolldb
