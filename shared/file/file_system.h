// Which backend a cluster's files go through.
#pragma once

#include <memory>

#include "shared/config/config.h"
#include "shared/file/emulated_nvm.h"
#include "shared/file/file.h"
#include "shared/file/io_watch.h"
#include "shared/file/posix_file_system.h"

namespace atolldb {

struct FileSystemSettings {
  FileBackend backend = FileBackend::posix;
  EmulatedLatency latency;   ///< all zero: no emulation
  FileWarning warn;          ///< may be empty
  IoWatch* watch = nullptr;  ///< which notes the calls; null: none does
};

/// Of `[durability]`: the emulated latency applies to writes and syncs.
FileSystemSettings file_system_settings(const Config::Durability& durability, FileWarning warn = {},
                                        IoWatch* watch = nullptr);

/// Touches no file. Files must not outlive it.
std::unique_ptr<FileSystem> make_file_system(const FileSystemSettings& settings);

}  // namespace atolldb
