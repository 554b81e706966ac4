#include "shared/file/file_system_wrappers.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <filesystem>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_errors.h"

namespace atolldb {
namespace {

uint64_t nanoseconds_in(std::chrono::nanoseconds time) {
  CHECK(time.count() >= 0);
  return static_cast<uint64_t>(time.count());
}

/// Returns the number of blocks that a transfer touches.
uint64_t blocks_of(uint64_t offset, uint64_t bytes) {
  if (bytes == 0) return 0;
  CHECK(offset <= ~bytes);
  return (offset + bytes - 1) / kIoBlockBytes - offset / kIoBlockBytes + 1;
}

class SlowFile : public ForwardingFile {
 public:
  SlowFile(std::unique_ptr<File> below, const EmulatedLatency& latency, const SpinDelay& delay)
      : ForwardingFile(std::move(below)), latency_(latency), delay_(delay) {}

  Result<void> write(uint64_t offset, std::span<const std::span<const std::byte>> slices) override {
    auto written = below().write(offset, slices);
    const uint64_t blocks = written ? blocks_of(offset, total_bytes(slices)) : 0;
    delay_.spin(nanoseconds_in(latency_.write) + blocks * nanoseconds_in(latency_.block_write));
    return written;
  }
  Result<void> sync() override {
    auto synced = below().sync();
    delay_.spin(nanoseconds_in(latency_.sync));
    return synced;
  }
  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    auto got = below().read(offset, into);
    CHECK(!got || *got <= into.size());
    const uint64_t pages = got ? blocks_of(offset, *got) : 0;
    delay_.spin(nanoseconds_in(latency_.read) + pages * nanoseconds_in(latency_.page_read));
    return got;
  }

 private:
  const EmulatedLatency& latency_;
  const SpinDelay& delay_;
};

Result<std::unique_ptr<File>> slow(Result<std::unique_ptr<File>> file,
                                   const EmulatedLatency& latency, const SpinDelay& delay) {
  if (!file) return file;
  return std::make_unique<SlowFile>(*std::move(file), latency, delay);
}

std::string directory_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

/// Checks that the disk reserve stays free before each growth of the file.
class ReservingFile : public ForwardingFile {
 public:
  ReservingFile(std::unique_ptr<File> below, const ReservingFileSystem& file_system)
      : ForwardingFile(std::move(below)), file_system_(file_system) {}

  Result<void> grow(uint64_t bytes) override {
    ATOLL_ASSIGN(const uint64_t now, size());
    if (bytes > now) {
      ATOLL_TRY(file_system_.check_room(directory_of(path()), bytes - now));
    }
    return below().grow(bytes);
  }

 private:
  const ReservingFileSystem& file_system_;
};

class SyncingFile final : public ForwardingFile {
 public:
  explicit SyncingFile(std::unique_ptr<File> below) : ForwardingFile(std::move(below)) {}

  Result<void> write(uint64_t offset, std::span<const std::span<const std::byte>> slices) override {
    CHECK(unsynced_bytes_ < kMaxUnsyncedBytes);
    ATOLL_TRY(below().write(offset, slices));
    unsynced_bytes_ += total_bytes(slices);
    if (unsynced_bytes_ < kMaxUnsyncedBytes) return {};
    return sync();
  }
  Result<void> sync() override {
    unsynced_bytes_ = 0;  // also if the sync fails: the file gets no more writes
    return below().sync();
  }

 private:
  uint64_t unsynced_bytes_ = 0;  // bytes written since the last sync
};

Result<std::unique_ptr<File>> syncing(Result<std::unique_ptr<File>> file) {
  if (!file) return file;
  return std::make_unique<SyncingFile>(*std::move(file));
}

class CountingFile final : public ForwardingFile {
 public:
  CountingFile(std::unique_ptr<File> below, std::atomic<uint64_t>& bytes_read)
      : ForwardingFile(std::move(below)), bytes_read_(bytes_read) {}

  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    auto count = ForwardingFile::read(offset, into);
    CHECK(!count || *count <= into.size());
    // Relaxed: for display only.
    if (count) bytes_read_.fetch_add(*count, std::memory_order_relaxed);
    return count;
  }

 private:
  std::atomic<uint64_t>& bytes_read_;
};

}  // namespace

Result<std::unique_ptr<File>> EmulatedNvm::create(const std::string& path, uint64_t bytes) {
  return slow(below().create(path, bytes), latency_, delay_);
}

Result<std::unique_ptr<File>> EmulatedNvm::open(const std::string& path) {
  return slow(below().open(path), latency_, delay_);
}

Result<std::unique_ptr<File>> EmulatedNvm::open_for_reading(const std::string& path) {
  return slow(below().open_for_reading(path), latency_, delay_);
}

Result<void> EmulatedNvm::sync_directory(const std::string& path) {
  auto synced = below().sync_directory(path);
  delay_.spin(nanoseconds_in(latency_.sync));
  return synced;
}

std::string EmulatedNvm::describe() const {
  return fmt::format(
      "{}; emulated latency in ns: read {}, write {}, sync {}, page read {}, block write {}",
      below().describe(), latency_.read.count(), latency_.write.count(), latency_.sync.count(),
      latency_.page_read.count(), latency_.block_write.count());
}

Result<FileSystemRoom> file_system_room(const std::string& directory) {
  std::string place = directory.empty() ? "." : directory;
  struct statvfs info{};
  while (statvfs(place.c_str(), &info) != 0) {
    const std::string above = directory_of(place);
    if (errno != ENOENT || above.empty() || above == place) {
      return io_error("statvfs of " + directory, errno);
    }
    place = above;
  }
  return FileSystemRoom{uint64_t{info.f_bavail} * info.f_frsize,
                        uint64_t{info.f_blocks} * info.f_frsize};
}

Result<uint64_t> free_bytes_at(const std::string& directory) {
  ATOLL_ASSIGN(const FileSystemRoom room, file_system_room(directory));
  return room.free_bytes;
}

Result<void> ReservingFileSystem::check_room(const std::string& directory, uint64_t more) const {
  if (reserve_bytes_ == 0) return {};
  CHECK(free_bytes_ != nullptr);
  ATOLL_ASSIGN(uint64_t free, free_bytes_(directory));
  const auto has_room = [&] { return free >= reserve_bytes_ && free - reserve_bytes_ >= more; };
  if (has_room()) return {};
  below().finish_removals();
  ATOLL_ASSIGN(free, free_bytes_(directory));
  if (has_room()) return {};
  return make_error(
      ExitCode::disk_full,
      fmt::format("{}: {} bytes are free, and gleaner.disk_reserve keeps {} of them for the log: "
                  "free disk space, or lower gleaner.disk_reserve (automatic: lower "
                  "durability.log_file_size)",
                  directory, free, reserve_bytes_));
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

Result<std::unique_ptr<File>> SyncingFileSystem::create(const std::string& path, uint64_t bytes) {
  return syncing(below().create(path, bytes));
}

Result<std::unique_ptr<File>> SyncingFileSystem::open(const std::string& path) {
  return syncing(below().open(path));
}

Result<std::unique_ptr<File>> CountingFileSystem::open_for_reading(const std::string& path) {
  ATOLL_ASSIGN(auto file, below().open_for_reading(path));
  return std::make_unique<CountingFile>(std::move(file), bytes_read_);
}

}  // namespace atolldb
