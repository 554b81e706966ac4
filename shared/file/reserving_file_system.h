// A file system that leaves room for others: files are made and grow only while so many bytes stay
// free behind them. For what can be given up (a run of the gleaner), so that what cannot (the log)
// finds its room.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "shared/file/forwarding_file_system.h"

namespace atolldb {

/// What an ordinary user can still write below this directory, or the nearest one above it that
/// exists.
Result<uint64_t> free_bytes_at(const std::string& directory);

/// Thread-safe, as far as `free_bytes` is.
class ReservingFileSystem : public ForwardingFileSystem {
 public:
  using FreeBytes = std::function<Result<uint64_t>(const std::string& directory)>;

  /// REQUIRES: `below` outlives it, and it its files. 0 reserves nothing, and asks nobody.
  ReservingFileSystem(FileSystem& below, uint64_t reserve_bytes,
                      FreeBytes free_bytes = free_bytes_at)
      : ForwardingFileSystem(below),
        reserve_bytes_(reserve_bytes),
        free_bytes_(std::move(free_bytes)) {}

  /// Whether `more` bytes below the directory leave the reserve. Code disk_full: no; names
  /// directory, what is free, the reserve and its key.
  Result<void> check_room(const std::string& directory, uint64_t more) const;

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;

 private:
  uint64_t reserve_bytes_;
  FreeBytes free_bytes_;
};

}  // namespace atolldb
