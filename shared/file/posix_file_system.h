// File system on system calls: direct I/O if the file system allows it, preallocation, fdatasync.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shared/file/file.h"
#include "shared/file/gradual_removal.h"
#include "shared/file/system_calls.h"

namespace atolldb {

/// Receives warnings for the user that are not errors. Called from any thread that does I/O.
using FileWarning = std::function<void(const std::string&)>;

/// The file system may refuse direct I/O when a file is opened. The device may refuse it when the
/// file is written or read. Files then go through the page cache; the first refusal gives a
/// warning. The guarantees are the same, because fdatasync provides them.
class PosixFileSystem : public FileSystem {
 public:
  /// REQUIRES: `calls` outlives this object, and this object outlives its files.
  explicit PosixFileSystem(FileWarning warn = {}, SystemCalls& calls = kernel_calls())
      : warn_(std::move(warn)), calls_(calls), removal_(calls) {}

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> make_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  void finish_removals() override { removal_.finish(); }
  Result<bool> link(const std::string& from, const std::string& to) override;
  Result<void> remove_directory(const std::string& path) override;
  Result<void> forget_cached(const std::string& path) override;
  bool is_durable() const override { return true; }
  std::string describe() const override;

  /// Calls `allocate`, which creates a file or makes it longer. If the disk is full, frees the
  /// blocks of removed files, and calls it again. Public for backends that remove files with this
  /// one.
  template <typename Allocate>
  auto with_room(Allocate&& allocate) {
    const uint64_t steps = removal_.steps();
    auto result = allocate();
    if (result || result.error().code != ExitCode::disk_full) return result;
    removal_.finish();
    return removal_.steps() == steps ? std::move(result) : allocate();
  }

 private:
  friend class PosixFile;

  Result<std::unique_ptr<File>> make_file(const std::string& path, UniqueFd buffered);
  Result<UniqueFd> open_direct(const UniqueFd& buffered, int flags, const std::string& path);
  void direct_refused(const std::string& path, const std::string& reason);

  FileWarning warn_;
  SystemCalls& calls_;
  GradualRemoval removal_;
  mutable std::mutex mutex_;
  std::optional<std::string> refusal_;  // text of the first refusal of direct I/O
};

}  // namespace atolldb
