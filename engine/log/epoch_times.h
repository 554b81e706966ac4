// Times of epochs, for a restore to a point in time (`atoll restore --time`).
//
// data_dir/coordinator/epoch_times is a ring of entries of 32 bytes, 128 in each block of 4 KiB.
// The coordinator adds an entry at most once per second, and only after commits. The file grows in
// steps of kEpochTimesStep up to kEpochTimesBytes; then the oldest entries are overwritten.
//
//   entry: [magic 4][crc 4][epoch 8][unix time in ms 8][first 8 bytes of the data's uuid]
//   crc: CRC32C of the bytes after the field. All numbers are little-endian.
//
// An entry says that all commits of its epoch, and of earlier epochs, took place before its time.
// So a restore to that epoch contains no commit after that time. It may lack commits of the second
// before that time.
//
// Entries are not synced, because a restore uses them only to find an epoch for a time. A power cut
// may lose the last ones. A block is rewritten with the same bytes before the new entry, so a torn
// write of sectors damages no earlier entry.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/format/log_block.h"
#include "shared/base/error.h"
#include "shared/file/file.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

inline constexpr uint64_t kEpochTimesBytes = uint64_t{16} << 20;
inline constexpr uint64_t kEpochTimesStep = uint64_t{64} << 10;
static_assert(kEpochTimesBytes % kEpochTimesStep == 0 && kEpochTimesStep % kIoBlockBytes == 0);

struct EpochTime {
  uint64_t epoch = 0;
  uint64_t unix_ms = 0;

  bool operator==(const EpochTime&) const = default;
};

/// Returns the path data_dir/coordinator/epoch_times.
std::string epoch_times_path(const std::string& data_dir);

/// Returns the intact entries that belong to this cluster, by ascending epoch. Skips damaged
/// entries. Returns no entries if the file is missing.
Result<std::vector<EpochTime>> read_epoch_times(FileSystem& file_system,
                                                const std::string& data_dir,
                                                const ClusterUuid& cluster_uuid);

/// Returns the entry with the largest epoch among the entries whose time is at most `unix_ms`.
/// Returns nothing if there is no such entry. If the clock was set back, several epochs may have
/// the same time; the largest of them counts.
std::optional<EpochTime> epoch_at(std::span<const EpochTime> times, uint64_t unix_ms);

/// Adds entries to the file. Thread: one at a time, and no other process writes the file.
class EpochTimesWriter {
 public:
  /// Creates the file if it is missing. Continues after the entry with the largest epoch.
  /// REQUIRES: `file_system` outlives the writer.
  static Result<EpochTimesWriter> open(FileSystem& file_system, const std::string& data_dir,
                                       const ClusterUuid& cluster_uuid);

  /// Writes the entry, unless its epoch is at most last_epoch(). Does not sync.
  Result<void> add(const EpochTime& time);
  Result<void> sync() { return file_->sync(); }
  uint64_t last_epoch() const { return last_epoch_; }

 private:
  EpochTimesWriter(std::unique_ptr<File> file, const ClusterUuid& cluster_uuid)
      : file_(std::move(file)), cluster_uuid_(cluster_uuid) {}

  /// Wraps `next_` around at the end of the ring, grows the file if needed, and loads the block of
  /// entry `next_` into `block_`.
  Result<void> find_room();
  Result<void> read_block(uint64_t block);

  std::unique_ptr<File> file_;
  ClusterUuid cluster_uuid_;
  IoBuffer block_{kIoBlockBytes};     // content of the block with the entry `next_`
  std::optional<uint64_t> block_at_;  // number of the block in `block_`, if one was read
  uint64_t next_ = 0;                 // number of the next entry in the file
  uint64_t last_epoch_ = 0;
};

}  // namespace atolldb
