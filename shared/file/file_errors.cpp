#include "shared/file/file_errors.h"

#include <cerrno>

#include "shared/base/error_text.h"
#include "shared/base/path_errors.h"
#include "shared/file/file.h"
#include "shared/file/file_failure.h"

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

}  // namespace

std::unexpected<Error> io_error(const std::string& what, int error_number) {
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

uint64_t total_bytes(std::span<const std::span<const std::byte>> slices) {
  uint64_t bytes = 0;
  for (const auto& slice : slices) bytes += slice.size();
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
                          std::to_string(kIoBlockBytes) + ": this is a bug of the caller");
  }
  if (offset > size || bytes > size - offset) {
    return make_error(ExitCode::durability,
                      write_text(path, offset, bytes) + ": the file has " + std::to_string(size) +
                          " bytes and does not grow: this is a bug of the caller");
  }
  return {};
}

Result<void> check_create(const std::string& path, uint64_t bytes) {
  if (bytes % kIoBlockBytes == 0) return {};
  return make_error(ExitCode::durability, "creation of " + path + " with " + std::to_string(bytes) +
                                              " bytes: the size must be a multiple of " +
                                              std::to_string(kIoBlockBytes) +
                                              ": this is a bug of the caller");
}

Result<void> check_grow(const std::string& path, uint64_t size, uint64_t bytes) {
  if (bytes % kIoBlockBytes == 0 && bytes >= size) return {};
  return make_error(ExitCode::durability,
                    "growth of " + path + " from " + std::to_string(size) + " to " +
                        std::to_string(bytes) + " bytes: the size must be a multiple of " +
                        std::to_string(kIoBlockBytes) +
                        " and never less than before: this is a bug of the caller");
}

}  // namespace atolldb
