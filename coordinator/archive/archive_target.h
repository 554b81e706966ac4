// The place of an archive: a directory, or a command that stores each file somewhere (R72).
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

/// A place that stores copies of files. Thread: one. A call may take long.
class ArchiveTarget {
 public:
  virtual ~ArchiveTarget() = default;

  /// Stores the file at `path` under `name`, and returns its size and checksum. The copy is durable
  /// on return. Never overwrites a file. Succeeds if the archive already has the same file under
  /// this name.
  virtual Result<FileSum> put(const std::string& path, const std::string& name) = 0;
  /// Returns the directory of the archive, or "" if a command stores the files.
  virtual const std::string& directory() const = 0;
  /// Returns the name of this place. The state of the archive has this name, too
  /// (ArchiveState::target).
  virtual std::string name() const = 0;
  /// Sets archive.timeout of the next commands. Thread: any.
  virtual void set_timeout(std::chrono::milliseconds /*timeout*/) {}
};

/// Returns whether a copy or command under way must end.
using IsCancelled = std::function<bool()>;

/// Copies files into an existing directory. Copies have the name <name>.part until they are durable
/// and verified. REQUIRES: the file system outlives the target.
std::unique_ptr<ArchiveTarget> make_directory_target(FileSystem& file_system, std::string directory,
                                                     IsCancelled is_cancelled);

/// Runs the command by /bin/sh. Exit code 0 means that the file is stored. REQUIRES: `file_system`
/// outlives the target.
std::unique_ptr<ArchiveTarget> make_command_target(FileSystem& file_system, std::string command,
                                                   std::chrono::milliseconds timeout,
                                                   IsCancelled is_cancelled);

/// Makes the target that the config names. REQUIRES: the config has an archive.
std::unique_ptr<ArchiveTarget> make_archive_target(const Config::Archive& archive,
                                                   FileSystem& file_system,
                                                   IsCancelled is_cancelled);

/// Returns the command with %p, %f and %% replaced. Paths with other characters than letters,
/// digits and `_./-,+@:=` are quoted for the shell.
std::string expand_command(const std::string& command, const std::string& path,
                           const std::string& name);

}  // namespace atolldb
