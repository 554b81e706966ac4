// File systems that wrap another one: they emulate a slower device, keep disk space in reserve,
// bound the bytes that are not synced, or count the bytes read.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "shared/base/tick_clock.h"
#include "shared/file/forwarding_file_system.h"

namespace atolldb {

struct EmulatedLatency {
  // Of each call.
  std::chrono::nanoseconds read{0};
  std::chrono::nanoseconds write{0};
  std::chrono::nanoseconds sync{0};
  // Of each block of kIoBlockBytes that a call reads or writes, also in part. A snapshot page is
  // one block.
  std::chrono::nanoseconds page_read{0};
  std::chrono::nanoseconds block_write{0};

  bool operator==(const EmulatedLatency&) const = default;
};

/// Adds the latency to every read, write and sync, by SpinDelay. Source: [FOEDUS15] section 9.3.1
/// (emulated NVRAM: a spin loop on the time-stamp counter in each read and write of a tmpfs).
/// REQUIRES: this file system outlives its files.
class EmulatedNvm : public ForwardingFileSystem {
 public:
  /// `counts` of the delays: may be null, else they outlive this object.
  EmulatedNvm(std::unique_ptr<FileSystem> below, EmulatedLatency latency,
              DelayCounts* counts = nullptr)
      : ForwardingFileSystem(*below), owned_(std::move(below)), latency_(latency), delay_(counts) {}

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  /// Returns text like "posix, direct I/O; emulated latency in ns: read 0, write 5000, sync 5000,
  /// page read 0, block write 0".
  std::string describe() const override;

 private:
  std::unique_ptr<FileSystem> owned_;
  EmulatedLatency latency_;
  SpinDelay delay_;
};

/// Room of a file system, in bytes.
struct FileSystemRoom {
  uint64_t free_bytes = 0;  // those that an ordinary user can still write
  uint64_t size_bytes = 0;
};
/// Returns the room of the file system of this directory, or of its nearest parent that exists.
Result<FileSystemRoom> file_system_room(const std::string& directory);
/// Returns its member free_bytes.
Result<uint64_t> free_bytes_at(const std::string& directory);

/// Creates and extends files only while a given number of bytes stays free. It is for work that may
/// fail, for example a snapshot job. It leaves room for the log, whose failure would stop the
/// cluster. Thread-safe if `free_bytes` is.
class ReservingFileSystem : public ForwardingFileSystem {
 public:
  using FreeBytes = std::function<Result<uint64_t>(const std::string& directory)>;

  /// REQUIRES: `below` outlives this object, and this object outlives its files. If `reserve_bytes`
  /// is 0, it reserves nothing, and never calls `free_bytes`.
  ReservingFileSystem(FileSystem& below, uint64_t reserve_bytes,
                      FreeBytes free_bytes = free_bytes_at)
      : ForwardingFileSystem(below),
        reserve_bytes_(reserve_bytes),
        free_bytes_(std::move(free_bytes)) {}

  /// Returns code disk_full if `more` bytes below the directory would use the reserve. The text
  /// names the directory, its free bytes, the reserve and its config key.
  Result<void> check_room(const std::string& directory, uint64_t more) const;

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;

 private:
  uint64_t reserve_bytes_;
  FreeBytes free_bytes_;
};

/// Limit of the bytes that a file of SyncingFileSystem has written but not synced. The last write
/// may exceed the limit. A device of 200 MB/s writes that many bytes in 40 ms.
inline constexpr uint64_t kMaxUnsyncedBytes = uint64_t{8} << 20;

/// Syncs each file that it creates or opens for writing after every kMaxUnsyncedBytes of writes.
/// Writers of large files on the device of a log use it. Without it, a sync of the log could wait
/// until the device has written the backlog of these files. REQUIRES: `below` outlives this object.
class SyncingFileSystem final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;
};

/// Counts the bytes read from files opened for reading only. Another thread can then report the
/// progress of a long read. REQUIRES: `bytes_read` outlives this object and its files.
class CountingFileSystem final : public ForwardingFileSystem {
 public:
  CountingFileSystem(std::unique_ptr<FileSystem> below, std::atomic<uint64_t>& bytes_read)
      : ForwardingFileSystem(*below), owned_(std::move(below)), bytes_read_(bytes_read) {}

  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override;

 private:
  std::unique_ptr<FileSystem> owned_;
  std::atomic<uint64_t>& bytes_read_;
};

}  // namespace atolldb
