// Progress of backups, restores and verifications.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "engine/archive/file_copy.h"
#include "shared/base/error.h"

namespace atolldb {

struct BackupProgress {
  std::string step;         // "copying snapshot 7"
  uint64_t files = 0;       // complete files of the backup
  uint64_t bytes = 0;       // bytes of these files
  uint64_t read_bytes = 0;  // bytes read so far, for copies and checksums
};

/// Called after each part of a file. An error ends the backup and is returned.
using OnBackupProgress = std::function<Result<void>(const BackupProgress&)>;

/// Counts the work of one backup, restore or verification, and reports it.
class ProgressReport {
 public:
  /// `on_progress` may be empty.
  explicit ProgressReport(const OnBackupProgress& on_progress) : on_progress_(on_progress) {}

  Result<void> begin_step(std::string step) {
    progress_.step = std::move(step);
    return send();
  }
  /// Returns a function that counts and reports the parts of files that are read.
  OnPart counted() {
    return [this](std::span<const std::byte> part) {
      progress_.read_bytes += part.size();
      return send();
    };
  }
  void add_file(uint64_t bytes) {
    ++progress_.files;
    progress_.bytes += bytes;
  }
  const BackupProgress& progress() const { return progress_; }

 private:
  Result<void> send() const { return on_progress_ ? on_progress_(progress_) : Result<void>(); }

  const OnBackupProgress& on_progress_;
  BackupProgress progress_;
};

}  // namespace atolldb
