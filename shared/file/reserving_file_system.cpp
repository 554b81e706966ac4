#include "shared/file/reserving_file_system.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <filesystem>

#include "shared/base/try.h"
#include "shared/file/file_errors.h"

namespace atolldb {
namespace {

std::string directory_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

/// Checks the reserve before each growth.
class ReservingFile : public ForwardingFile {
 public:
  ReservingFile(std::unique_ptr<File> below, const ReservingFileSystem& file_system)
      : ForwardingFile(std::move(below)), file_system_(file_system) {}

  Result<void> grow(uint64_t bytes) override {
    const auto now = size();
    if (!now) return std::unexpected(now.error());
    if (bytes > *now) {
      ATOLL_TRY(file_system_.check_room(directory_of(path()), bytes - *now));
    }
    return below().grow(bytes);
  }

 private:
  const ReservingFileSystem& file_system_;
};

}  // namespace

Result<uint64_t> free_bytes_at(const std::string& directory) {
  std::string place = directory.empty() ? "." : directory;
  struct statvfs info{};
  while (statvfs(place.c_str(), &info) != 0) {
    const std::string above = directory_of(place);
    if (errno != ENOENT || above.empty() || above == place) {
      return io_error("statvfs of " + directory, errno);
    }
    place = above;
  }
  return uint64_t{info.f_bavail} * info.f_frsize;
}

Result<void> ReservingFileSystem::check_room(const std::string& directory, uint64_t more) const {
  if (reserve_bytes_ == 0) return {};
  const auto free = free_bytes_(directory);
  if (!free) return std::unexpected(free.error());
  if (*free >= reserve_bytes_ && *free - reserve_bytes_ >= more) return {};
  return make_error(
      ExitCode::disk_full,
      fmt::format("{}: {} bytes are free, and gleaner.disk_reserve keeps {} of them for the log: "
                  "free disk space, or lower gleaner.disk_reserve and durability.log_file_size",
                  directory, *free, reserve_bytes_));
}

Result<std::unique_ptr<File>> ReservingFileSystem::create(const std::string& path, uint64_t bytes) {
  ATOLL_TRY(check_room(directory_of(path), bytes));
  ATOLL_ASSIGN(auto file, below().create(path, bytes));
  return std::make_unique<ReservingFile>(std::move(file), *this);
}

Result<std::unique_ptr<File>> ReservingFileSystem::open(const std::string& path) {
  ATOLL_ASSIGN(auto file, below().open(path));
  return std::make_unique<ReservingFile>(std::move(file), *this);
}

}  // namespace atolldb
