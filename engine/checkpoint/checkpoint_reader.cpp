#include "engine/checkpoint/checkpoint_reader.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "engine/format/crc32c.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Returns why the records of a block are not well-formed, or null if they are.
const char* record_defect_of(const CheckpointBlockHeader& block) {
  const auto* payload = reinterpret_cast<const std::byte*>(&block + 1);
  uint32_t records = 0;
  for (uint32_t offset = 0; offset < block.length; ++records) {
    const uint32_t room = block.length - offset;
    if (room < sizeof(LogRecord)) return "a record is cut off by the end of its block";
    const auto& record = *reinterpret_cast<const LogRecord*>(payload + offset);
    if (record.type != LogType::insert && record.type != LogType::append) {
      return "a record has an unknown type";
    }
    if (record.length > room ||
        record.length != LogRecord::bytes(record.key_bytes, record.payload_bytes)) {
      return "a record has a length that does not fit its key and payload";
    }
    offset += record.length;
  }
  DCHECK(block.length <= kMaxCheckpointPayload);
  return records == block.records ? nullptr : "the block has another number of records";
}

}  // namespace

Result<CheckpointReader> CheckpointReader::open(FileSystem& file_system,
                                                const CheckpointMetadata& metadata, size_t file) {
  CHECK(file < metadata.files.size());
  const CheckpointFileInfo& info = metadata.files[file];
  CheckpointReader reader(metadata, info);
  reader.path_ =
      checkpoint_file_path(info.directory, info.node, {metadata.id, info.writer, info.number});
  ATOLL_ASSIGN(const bool exists, file_system.exists(reader.path_));
  if (!exists) return reader.damaged("the file is missing");
  ATOLL_ASSIGN(reader.file_, file_system.open_for_reading(reader.path_));
  ATOLL_ASSIGN(const uint64_t size, reader.file_->size());
  if (size < info.bytes) {
    return reader.damaged(
        fmt::format("the file has {} bytes, the checkpoint wrote {}", size, info.bytes));
  }
  ATOLL_ASSIGN(const CheckpointBlockHeader* header, reader.read_block());
  if (header->type != CheckpointBlockType::file_header ||
      header->length != sizeof(CheckpointFileHeader)) {
    return reader.damaged("the file does not begin with a header");
  }
  CheckpointFileHeader content;
  std::memcpy(&content, header + 1, sizeof content);
  if (content.cluster_uuid != metadata.cluster_uuid) {
    return reader.damaged("the file belongs to another cluster");
  }
  return reader;
}

Result<const CheckpointBlockHeader*> CheckpointReader::next() {
  if (position_ == info_->bytes) {
    if (records_ != info_->records) {
      return damaged(fmt::format("the file has {} records, the checkpoint wrote {}", records_,
                                 info_->records));
    }
    if (checksum_ != info_->checksum) return damaged("the checksum of its blocks is wrong");
    return nullptr;
  }
  ATOLL_ASSIGN(const CheckpointBlockHeader* block, read_block());
  if (block->type != CheckpointBlockType::records) {
    return damaged("a block has another type than records");
  }
  if (const char* defect = record_defect_of(*block)) return damaged(defect);
  records_ += block->records;
  return block;
}

Result<const CheckpointBlockHeader*> CheckpointReader::read_block() {
  ATOLL_ASSIGN(const bool has_header, fill(kIoBlockBytes));
  if (!has_header) return damaged("the file ends before its last block");
  const CheckpointBlockHeader& first = header_at_position();
  if (first.magic != kCheckpointMagic) return damaged("no block of a checkpoint begins here");
  if (first.version != kCheckpointFormatVersion) {
    return damaged("the block's format has another version");
  }
  const uint64_t bytes = first.bytes;
  const bool is_possible = bytes % kIoBlockBytes == 0 && bytes >= kIoBlockBytes &&
                           bytes <= kMaxCheckpointBlockBytes && position_ + bytes <= info_->bytes;
  if (!is_possible) return damaged("the block's length is beyond the file's end");
  ATOLL_ASSIGN(const bool has_block, fill(bytes));
  if (!has_block) return damaged("the file ends within a block");
  const CheckpointBlockHeader& block = header_at_position();  // `fill` may have moved it
  if (const char* defect = defect_of(block)) return damaged(defect);
  checksum_ = crc32c(std::as_bytes(std::span(&block.crc, 1)), checksum_);
  position_ += bytes;
  ++sequence_;
  return &block;
}

const char* CheckpointReader::defect_of(const CheckpointBlockHeader& block) const {
  const std::span bytes(reinterpret_cast<const std::byte*>(&block), block.bytes);
  if (block.crc != crc32c(bytes.subspan(kCheckpointChecked))) {
    return "the block's checksum is wrong";
  }
  if (block.length > block.bytes - sizeof block) return "the block's payload is beyond its end";
  if (block.checkpoint != metadata_->id || block.replay_epoch != metadata_->replay_epoch) {
    return "the block is of another checkpoint";
  }
  if (block.node != info_->node || block.writer != info_->writer || block.number != info_->number) {
    return "the block is of another file of its checkpoint";
  }
  return block.sequence == sequence_ ? nullptr : "the block is not the successor of the one before";
}

Result<bool> CheckpointReader::fill(uint64_t bytes) {
  CHECK(position_ >= buffer_offset_ && bytes <= kMaxCheckpointBlockBytes);
  const uint64_t end = buffer_offset_ + buffer_bytes_;
  if (position_ + bytes <= end) return true;
  // Keeps what is there, so that each byte of the file is read once, and one after the other.
  CHECK(position_ <= end);
  const uint64_t kept = end - position_;
  const auto buffer = buffer_.bytes();
  std::memmove(buffer.data(), buffer.data() + (position_ - buffer_offset_), kept);
  buffer_offset_ = position_;
  buffer_bytes_ = kept;
  ATOLL_ASSIGN(const uint64_t count, file_->read(end, buffer.subspan(kept)));
  buffer_bytes_ += count;
  return buffer_bytes_ >= bytes;
}

std::unexpected<Error> CheckpointReader::damaged(const std::string& reason) const {
  return make_error(
      ExitCode::corruption,
      fmt::format("{}: checkpoint {}: at byte {}: {}: restore a backup, or start empty with "
                  "`atoll up --discard-data`",
                  path_, metadata_->id, position_, reason));
}

}  // namespace atolldb
