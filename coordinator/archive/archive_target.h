// Where an archive is: a directory, or a command that stores each file somewhere (R72).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "engine/archive/file_copy.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/file/file.h"

namespace atolldb {

/// Thread: one. A call may take long.
class ArchiveTarget {
 public:
  virtual ~ArchiveTarget() = default;

  /// Stores the file at `path` under `name`, and returns its sum. It is durable there on return.
  /// Overwrites nothing. Succeeds if the archive has the same file already.
  virtual Result<FileSum> put(const std::string& path, const std::string& name) = 0;
  /// Returns the directory of the archive, or "" if only a command knows where it is.
  virtual const std::string& directory() const = 0;
  /// Returns the name of this place, by which the state knows it again.
  virtual std::string name() const = 0;
};

/// Returns whether the work should end.
using IsCancelled = std::function<bool()>;

/// Copies files into an existing directory. Copies have the name <name>.part until they are durable
/// and verified. REQUIRES: the file system outlives the target.
std::unique_ptr<ArchiveTarget> make_directory_target(FileSystem& file_system, std::string directory,
                                                     IsCancelled is_cancelled);

/// Runs the command by /bin/sh. Exit code 0 means that the file is stored. REQUIRES: as above.
std::unique_ptr<ArchiveTarget> make_command_target(FileSystem& file_system, std::string command,
                                                   std::chrono::milliseconds timeout,
                                                   IsCancelled is_cancelled);

/// Makes the target of the config. REQUIRES: it has one.
std::unique_ptr<ArchiveTarget> make_archive_target(const Config::Archive& archive,
                                                   FileSystem& file_system,
                                                   IsCancelled is_cancelled);

/// Returns the command with %p, %f and %% replaced. Paths with other characters than letters,
/// digits and `_./-,+@:=` are quoted for the shell.
std::string expand_command(const std::string& command, const std::string& path,
                           const std::string& name);

}  // namespace atolldb
