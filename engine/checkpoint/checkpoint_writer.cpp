#include "engine/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/format/crc32c.h"
#include "engine/hooks/mutants.h"
#include "engine/log/log_files.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Returns the most bytes that a file gets in one turn.
uint64_t most_of_turn(uint64_t sync_bytes) {
  if (sync_bytes == 0) return kCheckpointTurnBytes;
  return std::clamp<uint64_t>(sync_bytes / kCheckpointFilesOfASync, kCheckpointBlockBytes,
                              kCheckpointTurnBytes);
}

}  // namespace

Result<CheckpointWriter> CheckpointWriter::create(FileSystem& file_system,
                                                  CheckpointWriterSettings settings) {
  CHECK(settings.files != 0 && settings.checkpoint != 0 && settings.replay_epoch != 0);
  CHECK(settings.pause_bytes != 0);
  CheckpointWriter writer(file_system, std::move(settings));
  ATOLL_TRY(file_system.make_directory(writer.directory()));
  for (uint32_t number = 0; number < writer.settings_.files; ++number) {
    if (auto created = writer.create_file(number); !created) {
      writer.discard();
      return std::unexpected(std::move(created).error());
    }
  }
  writer.begin_turn(0);
  return writer;
}

std::string CheckpointWriter::directory() const {
  return node_directory(settings_.directory, settings_.node);
}

std::string CheckpointWriter::path_of(uint32_t number) const {
  return checkpoint_file_path(settings_.directory, settings_.node,
                              {settings_.checkpoint, settings_.writer, number});
}

Result<void> CheckpointWriter::create_file(uint32_t number) {
  const std::string path = path_of(number);
  ATOLL_ASSIGN(const bool exists, file_system_->exists(path));
  if (exists) {
    ATOLL_TRY(file_system_->remove(path));
  }
  OpenFile& file = files_.emplace_back();
  file.info = {.directory = settings_.directory,
               .node = settings_.node,
               .writer = settings_.writer,
               .number = number};
  ATOLL_ASSIGN(file.file, file_system_->create(path, kCheckpointGrowth.least));
  file.size = kCheckpointGrowth.least;
  const CheckpointFileHeader header = {settings_.cluster_uuid};
  CHECK(length_ == 0 && records_ == 0);
  std::memcpy(payload(), &header, sizeof header);
  length_ = sizeof header;
  return write(file, CheckpointBlockType::file_header);
}

LogRecord& CheckpointWriter::begin_record(LogType type, uint32_t storage_id, Bytes key,
                                          uint32_t payload_bytes) {
  CHECK(has_room(key.size(), payload_bytes) && payload_bytes <= UINT16_MAX);
  auto& record = *reinterpret_cast<LogRecord*>(payload() + length_);
  record = LogRecord{};
  record.type = type;
  record.key_bytes = static_cast<uint16_t>(key.size());
  record.storage_id = storage_id;
  const uint32_t padded = align8(record.key_bytes);
  if (padded != 0) {
    std::memset(record.key() + padded - 8, 0, 8);
    std::memcpy(record.key(), key.data(), key.size());
  }
  begun_bytes_ = payload_bytes;
  return record;
}

void CheckpointWriter::end_record(Vid vid, uint32_t payload_bytes) {
  auto& record = *reinterpret_cast<LogRecord*>(payload() + length_);
  CHECK(payload_bytes <= begun_bytes_ && record.length == 0);
  record.payload_bytes = static_cast<uint16_t>(payload_bytes);
  record.length = LogRecord::bytes(record.key_bytes, payload_bytes);
  record.vid = vid.version();
  std::memset(record.payload() + payload_bytes, 0, align8(payload_bytes) - payload_bytes);
  length_ += record.length;
  ++records_;
  begun_bytes_ = 0;
  DCHECK(length_ <= kMaxCheckpointPayload && vid.ordinal() != 0);
}

Result<void> CheckpointWriter::write_if_full() {
  if (!is_full()) return {};
  ATOLL_TRY(write_block());
  if (settings_.pause != nullptr && unpaused_ >= settings_.pause_bytes) {
    unpaused_ = 0;
    settings_.pause();
  }
  return {};
}

void CheckpointWriter::begin_turn(size_t number) {
  CHECK(number < files_.size());
  current_ = number;
  const uint64_t bytes = files_[number].info.bytes;
  turn_end_ = bytes + std::clamp<uint64_t>(bytes, kCheckpointBlockBytes,
                                           most_of_turn(settings_.sync_bytes));
}

Result<void> CheckpointWriter::write_block() {
  OpenFile& file = files_[current_];
  ATOLL_TRY(write(file, CheckpointBlockType::records));
  if (file.info.bytes >= turn_end_) begin_turn((current_ + 1) % files_.size());
  const bool is_due = settings_.sync_bytes != 0 && unsynced_ >= settings_.sync_bytes;
  return is_due ? sync_all() : Result<void>();
}

Result<void> CheckpointWriter::write(OpenFile& file, CheckpointBlockType type) {
  const auto used = static_cast<uint32_t>(sizeof(CheckpointBlockHeader)) + length_;
  const uint32_t bytes = (used + kIoBlockBytes - 1) / kIoBlockBytes * kIoBlockBytes;
  CHECK(bytes <= kMaxCheckpointBlockBytes);
  const std::span<std::byte> block = buffer_.bytes().first(bytes);
  std::memset(block.data() + used, 0, bytes - used);
  CheckpointBlockHeader header = {};
  header.magic = kCheckpointMagic;
  header.checkpoint = settings_.checkpoint;
  header.sequence = file.sequence++;
  header.replay_epoch = settings_.replay_epoch;
  header.length = length_;
  header.bytes = bytes;
  header.records = records_;
  header.number = file.info.number;
  header.node = settings_.node;
  header.writer = settings_.writer;
  header.type = type;
  header.version = kCheckpointFormatVersion;
  std::memcpy(block.data(), &header, sizeof header);
  header.crc = crc32c(block.subspan(kCheckpointChecked));
  std::memcpy(block.data(), &header, sizeof header);
  if (file.info.bytes + bytes > file.size) {
    const uint64_t size = kCheckpointGrowth.next_size(file.size, bytes);
    ATOLL_TRY(file.file->grow(size));
    file.size = size;
  }
  const std::array<std::span<const std::byte>, 1> slices = {block};
  ATOLL_TRY(file.file->write(file.info.bytes, slices));
  file.info.bytes += bytes;
  file.info.records += records_;
  file.info.checksum = crc32c(std::as_bytes(std::span(&header.crc, 1)), file.info.checksum);
  file.is_synced = false;
  unsynced_ += bytes;
  unpaused_ += bytes;
  counters_.bytes += bytes;
  counters_.records += records_;
  ++counters_.blocks;
  length_ = records_ = 0;
  return {};
}

Result<void> CheckpointWriter::sync_all() {
  for (OpenFile& file : files_) {
    if (file.is_synced) continue;
    ATOLL_TRY(file.file->sync());
    file.is_synced = true;
    ++counters_.syncs;
  }
  unsynced_ = 0;
  return {};
}

Result<std::vector<CheckpointFileInfo>> CheckpointWriter::finish() {
  if (length_ != 0) {
    ATOLL_TRY(write_block());
  }
  // R91: the files are durable before the metadata names them.
  if (!fault::checkpoint_without_sync) {
    ATOLL_TRY(sync_all());
    ATOLL_TRY(file_system_->sync_directory(directory()));
  }
  std::vector<CheckpointFileInfo> infos;
  for (const OpenFile& file : files_) infos.push_back(file.info);
  CHECK(infos.size() == settings_.files);
  return infos;
}

void CheckpointWriter::discard() {
  for (OpenFile& file : files_) {
    file.file.reset();
    // The caller has an error already. delete_unneeded removes what is left.
    static_cast<void>(file_system_->remove(path_of(file.info.number)));
  }
  files_.clear();
}

}  // namespace atolldb
