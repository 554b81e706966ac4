#include "engine/log/epoch_times.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "engine/format/crc32c.h"
#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

constexpr uint32_t kEpochTimeMagic = 0x54454c41;  // "ALET"

struct TimeEntry {
  uint32_t magic;
  uint32_t crc;  // CRC32C of the bytes after this field
  uint64_t epoch;
  uint64_t unix_ms;
  /// First 8 bytes of the cluster's uuid. They tell entries of data that was discarded, because the
  /// file may survive a discard.
  uint64_t data;
};
static_assert(sizeof(TimeEntry) == 32);
constexpr uint64_t kEntriesPerBlock = kIoBlockBytes / sizeof(TimeEntry);
constexpr size_t kTimeChecked = offsetof(TimeEntry, epoch);

uint64_t first_bytes(const ClusterUuid& uuid) {
  uint64_t bytes = 0;
  static_assert(sizeof bytes <= sizeof(ClusterUuid));
  std::memcpy(&bytes, uuid.data(), sizeof bytes);
  return bytes;
}

uint32_t crc_of_entry(const TimeEntry& entry) {
  return crc32c(std::as_bytes(std::span(&entry, 1)).subspan(kTimeChecked));
}

/// Returns the entry. Returns nothing if the entry is damaged, was never written, or belongs to
/// another cluster's data.
std::optional<EpochTime> decode_entry(std::span<const std::byte> bytes, uint64_t data) {
  CHECK(bytes.size() == sizeof(TimeEntry));
  TimeEntry entry;
  std::memcpy(&entry, bytes.data(), sizeof entry);
  const bool is_valid = entry.magic == kEpochTimeMagic && entry.crc == crc_of_entry(entry) &&
                        entry.data == data && entry.epoch <= kMaxEpoch;
  if (!is_valid) return std::nullopt;
  return EpochTime{entry.epoch, entry.unix_ms};
}

/// Calls `visit(number, entry)` for each intact entry of the file.
template <typename Visit>
Result<void> for_each_time(const File& file, const ClusterUuid& uuid, Visit visit) {
  ATOLL_ASSIGN(const uint64_t size, file.size());
  IoBuffer buffer(kEpochTimesStep);
  const uint64_t data = first_bytes(uuid);
  for (uint64_t offset = 0; offset < std::min(size, kEpochTimesBytes); offset += kEpochTimesStep) {
    ATOLL_ASSIGN(const uint64_t count, file.read(offset, buffer.bytes()));
    for (uint64_t at = 0; at + sizeof(TimeEntry) <= count; at += sizeof(TimeEntry)) {
      const auto entry = decode_entry(buffer.bytes().subspan(at, sizeof(TimeEntry)), data);
      if (entry) visit((offset + at) / sizeof(TimeEntry), *entry);
    }
  }
  return {};
}

}  // namespace

std::string epoch_times_path(const std::string& data_dir) {
  return path_in(coordinator_directory(data_dir), "epoch_times");
}

Result<std::vector<EpochTime>> read_epoch_times(FileSystem& file_system,
                                                const std::string& data_dir,
                                                const ClusterUuid& cluster_uuid) {
  std::vector<EpochTime> times;
  const std::string path = epoch_times_path(data_dir);
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (!exists) return times;
  ATOLL_ASSIGN(const auto file, file_system.open_for_reading(path));
  ATOLL_TRY(for_each_time(*file, cluster_uuid,
                          [&](uint64_t, const EpochTime& time) { times.push_back(time); }));
  std::ranges::sort(times, {}, &EpochTime::epoch);
  return times;
}

std::optional<EpochTime> epoch_at(std::span<const EpochTime> times, uint64_t unix_ms) {
  std::optional<EpochTime> found;
  for (const EpochTime& time : times) {
    if (time.unix_ms > unix_ms) continue;
    if (!found || found->epoch < time.epoch) found = time;
  }
  CHECK(!found || found->unix_ms <= unix_ms);
  return found;
}

Result<EpochTimesWriter> EpochTimesWriter::open(FileSystem& file_system,
                                                const std::string& data_dir,
                                                const ClusterUuid& cluster_uuid) {
  const std::string path = epoch_times_path(data_dir);
  ATOLL_TRY(file_system.make_directory(coordinator_directory(data_dir)));
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  ATOLL_ASSIGN(auto file,
               exists ? file_system.open(path) : file_system.create(path, kEpochTimesStep));
  EpochTimesWriter writer(std::move(file), cluster_uuid);
  const auto take = [&](uint64_t number, const EpochTime& time) {
    if (time.epoch < writer.last_epoch_) return;
    writer.last_epoch_ = time.epoch;
    writer.next_ = number + 1;
  };
  ATOLL_TRY(for_each_time(*writer.file_, cluster_uuid, take));
  if (!exists) {
    ATOLL_TRY(writer.file_->sync());
    ATOLL_TRY(file_system.sync_directory(coordinator_directory(data_dir)));
  }
  return writer;
}

Result<void> EpochTimesWriter::add(const EpochTime& time) {
  CHECK(time.epoch <= kMaxEpoch);
  if (time.epoch <= last_epoch_) return {};
  ATOLL_TRY(find_room());
  TimeEntry entry = {kEpochTimeMagic, 0, time.epoch, time.unix_ms, first_bytes(cluster_uuid_)};
  entry.crc = crc_of_entry(entry);
  const std::span<std::byte> bytes = block_.bytes();
  std::memcpy(bytes.data() + next_ % kEntriesPerBlock * sizeof entry, &entry, sizeof entry);
  const std::array<std::span<const std::byte>, 1> slices = {bytes};
  ATOLL_TRY(file_->write(next_ / kEntriesPerBlock * kIoBlockBytes, slices));
  ++next_;
  last_epoch_ = time.epoch;
  return {};
}

Result<void> EpochTimesWriter::find_room() {
  constexpr uint64_t kMostEntries = kEpochTimesBytes / sizeof(TimeEntry);
  if (next_ >= kMostEntries) next_ = 0;
  const uint64_t block = next_ / kEntriesPerBlock;
  ATOLL_ASSIGN(const uint64_t size, file_->size());
  const uint64_t end = (block + 1) * kIoBlockBytes;
  if (size < end) {
    ATOLL_TRY(file_->grow((end + kEpochTimesStep - 1) / kEpochTimesStep * kEpochTimesStep));
  }
  return block_at_ == block ? Result<void>() : read_block(block);
}

Result<void> EpochTimesWriter::read_block(uint64_t block) {
  CHECK(block_.bytes().size() == kIoBlockBytes);
  block_at_.reset();
  ATOLL_ASSIGN(const uint64_t count, file_->read(block * kIoBlockBytes, block_.bytes()));
  std::ranges::fill(block_.bytes().subspan(count), std::byte{});
  block_at_ = block;
  return {};
}

}  // namespace atolldb
