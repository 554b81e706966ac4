// Notices that a file was replaced or removed, or has other permissions, also if its name leads to
// it over symbolic links.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "shared/base/error.h"
#include "shared/base/unique_fd.h"

namespace atolldb {

/// Thread: one.
class FileWatch {
 public:
  /// Watches the names of the file and of all links on the way to it. REQUIRES: `path` is absolute.
  /// Error: resources if a folder cannot be watched.
  Result<void> open(const std::string& path);
  bool is_open() const { return events_.is_open(); }
  /// Returns a descriptor that is readable if `has_changed` has something to read. Changes with
  /// each call of `has_changed`.
  int fd() const { return events_.get(); }
  /// Reads the events. Returns whether the file or one of the links was written, replaced or
  /// removed, or has other permissions. The caller then reads the file: no later change is lost.
  bool has_changed();

 private:
  using Names = std::multimap<int, std::filesystem::path>;  // by watch descriptor

  Result<void> watch(const std::filesystem::path& folder, const std::filesystem::path& name);
  Result<void> watch_way();

  std::filesystem::path path_;
  UniqueFd events_;
  Names names_;  // full paths
};

}  // namespace atolldb
