// Chooses and creates the backend for a cluster's files.
#pragma once

#include <memory>

#include "shared/config/config.h"
#include "shared/file/file.h"
#include "shared/file/file_system_wrappers.h"
#include "shared/file/io_watch.h"
#include "shared/file/posix_file_system.h"

namespace atolldb {

struct FileSystemSettings {
  FileBackend backend = FileBackend::posix;
  EmulatedLatency latency;   ///< all zero: no emulation
  FileWarning warn;          ///< may be empty
  IoWatch* watch = nullptr;  ///< notes the calls; null: calls are not noted
};

/// Returns the settings in `[durability]`. The emulated latency applies to writes and syncs.
FileSystemSettings file_system_settings(const Config::Durability& durability, FileWarning warn = {},
                                        IoWatch* watch = nullptr);

/// Creates a backend without touching any file. REQUIRES: the backend outlives its files.
std::unique_ptr<FileSystem> make_file_system(const FileSystemSettings& settings);

/// Creates the backend `null`, which discards data. REQUIRES: it outlives its files.
std::unique_ptr<FileSystem> make_null_file_system();

}  // namespace atolldb
