// Note of the last backup of a cluster: a file in its data directory, from which the coordinator
// knows the age of the backup (atoll_backup_finished_seconds).
#pragma once

#include <cstdint>
#include <string>

#include "shared/base/error.h"

namespace atolldb {

struct BackupNote {
  uint64_t finished_s = 0;  // seconds since 1970
  std::string id;           // of the backup in `directory`
  std::string directory;
};

/// Writes the note atomically. A restored database has no note, because it has no backup yet.
Result<void> write_backup_note(const std::string& data_dir, const BackupNote& note);

/// Returns the time of the last backup in seconds since 1970, or 0 if there is no readable note.
uint64_t last_backup_time(const std::string& data_dir);

}  // namespace atolldb
