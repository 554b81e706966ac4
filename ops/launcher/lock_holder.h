// Finds the live launcher that holds a lock file. The content of the file counts only if the kernel
// confirms that the named process holds the lock.
#pragma once

#include <optional>
#include <string>

#include "shared/base/error.h"
#include "shared/base/process_id.h"

namespace atolldb {

struct LockHolder {
  ProcessId launcher;
  std::string cluster;
  std::string run_dir;  // empty: the file does not name one
};

/// Returns the launcher that the file at `path` names, if that process is alive and holds the lock
/// of exactly this file. Returns nothing if there is no file or no lock, if another process holds
/// the lock, or if the file is a copy (R49). Returns an error if the file cannot be read, for
/// example without permission.
Result<std::optional<LockHolder>> holder_of_lock(const std::string& path);

}  // namespace atolldb
