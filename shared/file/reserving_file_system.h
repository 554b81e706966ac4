// File system that keeps disk space in reserve: it creates and extends files only while a given
// number of bytes stays free. For work that may be given up (a run of the gleaner), so that the
// log, which may not, finds room.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "shared/file/forwarding_file_system.h"

namespace atolldb {

/// Returns the bytes that an ordinary user can still write below this directory, or below its
/// nearest parent that exists.
Result<uint64_t> free_bytes_at(const std::string& directory);

/// Thread-safe if `free_bytes` is.
class ReservingFileSystem : public ForwardingFileSystem {
 public:
  using FreeBytes = std::function<Result<uint64_t>(const std::string& directory)>;

  /// REQUIRES: `below` outlives this object, and this object outlives its files. With 0 it reserves
  /// nothing, and never calls `free_bytes`.
  ReservingFileSystem(FileSystem& below, uint64_t reserve_bytes,
                      FreeBytes free_bytes = free_bytes_at)
      : ForwardingFileSystem(below),
        reserve_bytes_(reserve_bytes),
        free_bytes_(std::move(free_bytes)) {}

  /// Checks that `more` bytes below the directory leave the reserve. Otherwise returns code
  /// disk_full; the text names the directory, its free bytes, the reserve and its config key.
  Result<void> check_room(const std::string& directory, uint64_t more) const;

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;

 private:
  uint64_t reserve_bytes_;
  FreeBytes free_bytes_;
};

}  // namespace atolldb
