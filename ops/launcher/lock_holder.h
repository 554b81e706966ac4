// Which live launcher holds a lock file: what the file says counts only if the kernel says that the
// named process has the lock.
#pragma once

#include <optional>
#include <string>

#include "shared/error.h"
#include "shared/process/process_id.h"

namespace atolldb {

struct LockHolder {
  ProcessId launcher;
  std::string cluster;
  std::string run_dir;  // empty: the file does not name one
};

/// Returns the launcher that the file at `path` names, if that process lives and holds the lock of
/// this very file. Nothing: no file, no lock, it is another process's, or the file is a copy (R49).
/// An error: the file cannot be read, because permission is missing for example.
Result<std::optional<LockHolder>> holder_of_lock(const std::string& path);

}  // namespace atolldb
