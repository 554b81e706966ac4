// A file system in memory that can lose its power: what was synced stays, of the rest any part
// does. It is harsher than a journaling file system, and promises exactly what shared/file/file.h
// does:
//   content    of each 512-byte sector the synced version, or any version written since
//   size       of a file that was never synced: any multiple of a sector up to it
//   names      each creation, rename and removal since the directory's last sync: done or not,
//              in any combination; a rename is done in one step. A synced file whose directory was
//              not synced may be gone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shared/file/file.h"

namespace atolldb::test {

inline constexpr uint32_t kSectorBytes = 512;

struct PowerCutState;  // files, names and what of them is synced

/// Thread-safe; so are calls of different files. All paths are absolute; "/" exists.
class PowerCutFileSystem : public FileSystem {
 public:
  PowerCutFileSystem();
  ~PowerCutFileSystem() override;

  /// What a restart after a power cut at this instant finds: an image of its own, whose content is
  /// all synced. The same seed gives the same image. This object is not changed: cut it as often
  /// as you like, also while other threads use it.
  std::unique_ptr<PowerCutFileSystem> cut(uint64_t seed) const;
  /// The image in which all that was not synced is lost; and the one in which nothing is.
  std::unique_ptr<PowerCutFileSystem> cut_losing_all() const;
  std::unique_ptr<PowerCutFileSystem> cut_losing_nothing() const;

  /// From now on every call answers an error and changes nothing: for threads of the machine that
  /// lost its power. `cut` works still.
  void power_off();

  /// Sectors and names that a cut could lose now.
  uint64_t unsynced_sectors() const;
  uint64_t unsynced_names() const;

  /// Damages a file for tests: flips the bits of `mask` in the byte at `offset`, synced or not.
  Result<void> corrupt(const std::string& path, uint64_t offset, uint8_t mask);
  /// The same: puts whole sectors in the place of others.
  Result<void> replace(const std::string& path, uint64_t offset,
                       std::span<const std::byte> sectors);
  /// The same: the file ends at `bytes`, a multiple of kSectorBytes.
  Result<void> truncate(const std::string& path, uint64_t bytes);

  /// A sync of the file fails, as with a device that refuses some writes: each unsynced sector is
  /// on the device or lost, as the seed says. The page cache keeps what was lost, calls it clean,
  /// and gives it to readers until forget_cached or a cut.
  void fail_sync(const std::string& path, uint64_t seed);
  /// The page cache drops all that it keeps of lost sectors, as it may do at any time.
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
  Result<void> forget_cached(const std::string& path) override;
  /// True: what is synced survives `cut`.
  bool is_durable() const override { return true; }
  std::string describe() const override { return "memory, with power cuts"; }

 private:
  explicit PowerCutFileSystem(std::shared_ptr<PowerCutState> state);

  std::shared_ptr<PowerCutState> state_;
};

}  // namespace atolldb::test
