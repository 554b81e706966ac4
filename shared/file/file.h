// The one interface of file I/O for logs, snapshots, savepoints (design: durability). Backends are
// made by `make_file_system` (file_system.h). Cold: errors are values that name file, offset and
// reason. A failed sync is final: after it the file must not be written or synced again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared/error.h"

namespace atolldb {

/// Offsets, lengths and addresses of writes are multiples of this: what direct I/O asks for.
inline constexpr uint32_t kIoBlockBytes = 4096;

/// One open file. One thread writes and syncs; any number read.
class File {
 public:
  virtual ~File() = default;

  /// Writes the slices one after the other from `offset` on. Offset, and each slice's address and
  /// length, are multiples of kIoBlockBytes. All or an error: disk_full, or durability.
  virtual Result<void> write(uint64_t offset,
                             std::span<const std::span<const std::byte>> slices) = 0;
  /// Makes the file `bytes` long, a multiple of kIoBlockBytes and not less than now: zeros behind
  /// what it had, with their blocks allocated. Called by the thread that writes. Nothing or all; an
  /// error (disk_full, or durability) leaves the file good and as long as it was.
  virtual Result<void> grow(uint64_t bytes) = 0;
  /// Everything written before, and the file's size, survives a power cut afterwards.
  virtual Result<void> sync() = 0;
  /// Reads into `into` from any offset; fewer bytes only at the end of the file.
  virtual Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const = 0;
  virtual Result<uint64_t> size() const = 0;
  virtual const std::string& path() const = 0;
};

/// A backend: makes and opens files. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// A new file of `bytes` zeros whose blocks are allocated; an error if it exists. Durable with
  /// its directory entry once `sync` of the file and `sync_directory` have returned.
  virtual Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) = 0;
  /// An existing file, for reading and for writing within its size, or growing.
  virtual Result<std::unique_ptr<File>> open(const std::string& path) = 0;
  /// The same, never for writing: of somebody else's live files, too.
  virtual Result<std::unique_ptr<File>> open_for_reading(const std::string& path) = 0;
  virtual Result<void> sync_directory(const std::string& path) = 0;
  /// With missing parents; each new directory entry is synced.
  virtual Result<void> make_directory(const std::string& path) = 0;
  /// Names (not paths), sorted; an error if the directory is missing.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  virtual Result<bool> exists(const std::string& path) = 0;
  /// Atomic, over an existing file too; durable after sync_directory of the target's.
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> remove(const std::string& path) = 0;
  /// Later reads of the file see what the device has, not what a cache kept of a write that the
  /// device has refused (R53). What was written and not synced is written before. Backends without
  /// such a cache do nothing. A missing file is no error.
  virtual Result<void> forget_cached([[maybe_unused]] const std::string& path) { return {}; }

  /// What a sync of this backend is worth: false for `null`, which must not be called durable.
  virtual bool is_durable() const = 0;
  /// For people: "posix, direct I/O", "pmem, cache-line granularity, ...".
  virtual std::string describe() const = 0;
};

}  // namespace atolldb
