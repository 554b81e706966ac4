// In-memory file system that simulates power cuts. Synced state survives a cut; any part of the
// unsynced state may survive. It is harsher than a journaling file system, and promises exactly
// what shared/file/file.h promises:
//   content    each 512-byte sector has its synced version, or any version written since
//   size       a file that was never synced has any multiple of a sector up to its size
//   names      each creation, rename and removal since the directory's last sync is done or not,
//              in any combination; a rename is atomic. A synced file may be lost if its directory
//              was not synced.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shared/file/file.h"

namespace atolldb::test {

inline constexpr uint32_t kSectorBytes = 512;

struct PowerCutState;  // the state: files, names, and the synced part of both

/// Thread-safe, and calls of different files may run in parallel. All paths are absolute; "/"
/// exists.
class PowerCutFileSystem : public FileSystem {
 public:
  PowerCutFileSystem();
  ~PowerCutFileSystem() override;

  /// Returns the image that a restart after a power cut at this instant finds. All content of the
  /// image is synced. Equal seeds give equal images. This object does not change, so a test
  /// may cut it repeatedly, also while other threads use it.
  std::unique_ptr<PowerCutFileSystem> cut(uint64_t seed) const;
  /// `cut_losing_all` returns the image without any unsynced state. `cut_losing_nothing` returns
  /// the image with all unsynced state.
  std::unique_ptr<PowerCutFileSystem> cut_losing_all() const;
  std::unique_ptr<PowerCutFileSystem> cut_losing_nothing() const;

  /// From now on every call returns an error and changes nothing, for threads of the machine that
  /// lost its power. `cut` still works.
  void power_off();

  /// Number of sectors and of names that a cut could lose now.
  uint64_t unsynced_sectors() const;
  uint64_t unsynced_names() const;

  /// Damages a file for a test: flips the bits of `mask` in the byte at `offset`, in the synced and
  /// the unsynced version.
  Result<void> corrupt(const std::string& path, uint64_t offset, uint8_t mask);
  /// Damages a file for a test: replaces whole sectors.
  Result<void> replace(const std::string& path, uint64_t offset,
                       std::span<const std::byte> sectors);
  /// Damages a file for a test: truncates it to `bytes`, a multiple of kSectorBytes.
  Result<void> truncate(const std::string& path, uint64_t bytes);

  /// Makes a sync of the file fail, as on a device that refuses some writes. The seed decides for
  /// each unsynced sector whether it reaches the device or is lost. The page cache keeps lost
  /// sectors, marks them clean, and returns them to readers until forget_cached or a cut.
  void fail_sync(const std::string& path, uint64_t seed);
  /// Evicts all lost sectors from the page cache, as the kernel may do at any time.
  void evict();

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> make_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<bool> link(const std::string& from, const std::string& to) override;
  /// The removal is durable at once, as the creation of a directory is.
  Result<void> remove_directory(const std::string& path) override;
  Result<void> forget_cached(const std::string& path) override;
  /// Returns true, because synced state survives `cut`.
  bool is_durable() const override { return true; }
  std::string describe() const override { return "memory, with power cuts"; }

 private:
  explicit PowerCutFileSystem(std::shared_ptr<PowerCutState> state);

  std::shared_ptr<PowerCutState> state_;
};

}  // namespace atolldb::test
