#include "ops/export/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "engine/format/crc32c.h"

namespace atolldb {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

std::string temporary_path(const std::string& path) { return path + ".tmp"; }

void add_to_sum(PartSum& sum, std::span<const std::byte> bytes) {
  sum.crc32c = crc32c(bytes, sum.crc32c);
  sum.bytes += bytes.size();
}

}  // namespace

std::unexpected<Error> PartFile::failed(const char* what, int error) const {
  const bool is_full = error == ENOSPC || error == EDQUOT;
  return make_error(
      is_full ? ExitCode::disk_full : ExitCode::durability,
      fmt::format("{}: cannot be {}: {}: {}", path_, what, std::strerror(error),
                  is_full ? "make room, then `atoll export --resume`" : "check the device"));
}

Result<PartFile> PartFile::create(const std::string& path, uint64_t reserve_bytes) {
  UniqueFd fd(open(temporary_path(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const int error = errno;
  const bool is_open = fd.get() >= 0;
  PartFile file(path, std::move(fd), reserve_bytes);
  if (!is_open) return file.failed("created", error);
  return file;
}

Result<void> PartFile::write(std::string_view text) {
  if (reserve_bytes_ != 0) {
    struct statvfs room{};
    if (fstatvfs(fd_.get(), &room) == 0 &&
        uint64_t{room.f_bavail} * room.f_frsize < reserve_bytes_ + text.size()) {
      return make_error(ExitCode::disk_full,
                        fmt::format("{}: less than {} bytes would stay free, which the running "
                                    "cluster needs: make room, then `atoll export --resume`",
                                    path_, reserve_bytes_));
    }
  }
  add_to_sum(sum_, std::as_bytes(std::span(text.data(), text.size())));
  while (!text.empty()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(fd_.get(), text.data(), text.size()); });
    if (written < 0) return failed("written", errno);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Result<PartSum> PartFile::finish() {
  if (fsync(fd_.get()) != 0) return failed("synced", errno);
  if (std::rename(temporary_path(path_).c_str(), path_.c_str()) != 0) {
    return failed("renamed", errno);
  }
  return sum_;
}

Result<PartSum> sum_of_part(const std::string& path) {
  PartSum sum;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    if (errno == ENOENT) return sum;
    return make_error(ExitCode::failed,
                      fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  std::vector<std::byte> buffer(kReadBytes);
  for (;;) {
    const ssize_t count =
        uninterrupted([&] { return read(fd.get(), buffer.data(), buffer.size()); });
    if (count < 0) {
      return make_error(ExitCode::failed,
                        fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    }
    if (count == 0) return sum;
    add_to_sum(sum, std::span(buffer).first(static_cast<size_t>(count)));
  }
}

}  // namespace atolldb
