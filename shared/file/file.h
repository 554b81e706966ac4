// Interface of file I/O for logs, snapshots and savepoints. `make_file_system` (file_system.h)
// makes the backends. The interface is for cold paths: errors are values that name file, offset and
// reason. A failed sync is final: the file must not be written or synced again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/error.h"

namespace atolldb {

/// Direct I/O requires offsets, lengths and addresses of transfers to be multiples of this.
inline constexpr uint32_t kIoBlockBytes = 4096;

/// One open file. One thread writes and syncs; any number of threads read.
class File {
 public:
  virtual ~File() = default;

  /// Writes all slices one after the other, starting at `offset`. Error: code disk_full or
  /// durability; some slices may have been written then. REQUIRES: the offset, and each slice's
  /// address and length, are multiples of kIoBlockBytes.
  virtual Result<void> write(uint64_t offset,
                             std::span<const std::span<const std::byte>> slices) = 0;
  /// Extends the file to `bytes` with zeros, and allocates their blocks. Error: code disk_full or
  /// durability; the file then stays usable and as long as before. REQUIRES: `bytes` is a multiple
  /// of kIoBlockBytes, and not less than the size. Thread: the writer of the file.
  virtual Result<void> grow(uint64_t bytes) = 0;
  /// Makes all earlier writes, and the file's size, survive a power cut.
  virtual Result<void> sync() = 0;
  /// Reads into `into` from any offset. Returns fewer bytes only at the end of the file.
  virtual Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const = 0;
  /// Returns the first offset from `offset` on at which the file may hold other bytes than zeros,
  /// or the size. All bytes between `offset` and the result are zeros now. Backends that cannot
  /// tell return `offset`. REQUIRES: `offset` is at most the size.
  virtual Result<uint64_t> next_data(uint64_t offset) const { return offset; }
  virtual Result<uint64_t> size() const = 0;
  virtual const std::string& path() const = 0;

  /// A read that its caller passes to the kernel (BatchReader).
  struct RawRead {
    int descriptor = -1;                   // for reads of whole blocks; -1: use `read` instead
    std::atomic<int64_t>* note = nullptr;  // entry in the IoWatch; null: the read is not recorded
  };
  /// Begins a raw read. Each call is followed by a call of `end_raw_read` with its result.
  virtual RawRead begin_raw_read() const { return {}; }
  virtual void end_raw_read([[maybe_unused]] const RawRead& raw) const {}
};

/// A file that is written from its begin to its end grows by its size, within these limits. So many
/// small files waste little room, and large ones need few calls of File::grow. Unit: bytes.
struct FileGrowth {
  uint64_t least = 0;
  uint64_t most = 0;

  /// Returns the next size of a file of `size` bytes that lacks room for `bytes` more. REQUIRES:
  /// least <= most.
  constexpr uint64_t next_size(uint64_t size, uint64_t bytes) const {
    DCHECK(least <= most);
    return size + std::max(bytes, std::clamp(size, least, most));
  }
};

/// A backend, which creates and opens files. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// Creates a file of `bytes` zeros with allocated blocks. Returns an error if it exists. The file
  /// is durable with its directory entry after `sync` of the file and `sync_directory`.
  virtual Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) = 0;
  /// Opens an existing file, for reading, for writing within its size, and for growing.
  virtual Result<std::unique_ptr<File>> open(const std::string& path) = 0;
  /// Opens an existing file for reading only. Another process may be writing the file.
  virtual Result<std::unique_ptr<File>> open_for_reading(const std::string& path) = 0;
  virtual Result<void> sync_directory(const std::string& path) = 0;
  /// Creates missing parents, too. Syncs each new directory entry.
  virtual Result<void> make_directory(const std::string& path) = 0;
  /// Returns sorted names (not paths), or an error if the directory is missing.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  virtual Result<bool> exists(const std::string& path) = 0;
  /// Renames atomically, and replaces an existing file. Durable after sync_directory of the target
  /// directory.
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  /// Removes the name. The file's blocks may become free a while later.
  virtual Result<void> remove(const std::string& path) = 0;
  /// Frees the blocks of all files that this process has removed and that are open nowhere else.
  virtual void finish_removals() {}
  /// Gives a file a second name (a hard link). Returns false if links are impossible there: on
  /// another file system, or if the file system or the kernel refuses them. The caller then copies.
  /// Durable after sync_directory of the directory of `to`. Returns an error if `to` exists.
  virtual Result<bool> link([[maybe_unused]] const std::string& from,
                            [[maybe_unused]] const std::string& to) {
    return false;
  }
  /// Removes an empty directory. Durable after sync_directory of its parent.
  virtual Result<void> remove_directory(const std::string& path) {
    return make_error(ExitCode::failed, path + ": this backend removes no directories");
  }
  /// Makes later reads of the file return what the device has. Without this call, the page cache
  /// might return data that the device has refused to write (R53). First writes unsynced data back.
  /// Does nothing in backends without such a cache. A missing file is not an error.
  virtual Result<void> forget_cached([[maybe_unused]] const std::string& path) { return {}; }

  /// Returns whether a sync makes data durable. The backend `null`, which discards
  /// all data, returns false.
  virtual bool is_durable() const = 0;
  /// Description for display: "posix, direct I/O", "pmem, cache-line granularity, ...".
  virtual std::string describe() const = 0;
};

}  // namespace atolldb
