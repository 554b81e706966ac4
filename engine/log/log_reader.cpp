#include "engine/log/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/format/increment.h"
#include "engine/format/log_block.h"
#include "engine/format/vid.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

bool is_zero(const LogBlock& block) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&block);
  return bytes[0] == std::byte{} && std::memcmp(bytes, bytes + 1, sizeof block - 1) == 0;
}

const char* defect_of(const LogRecord& record, uint32_t room, uint64_t epoch) {
  if (record.type > LogType::add) return "has an unknown type";
  if (record.length % 8 != 0) return "has a length that is no multiple of 8";
  if (record.length < kMinLogRecordBytes || record.length > room) {
    return "has a length beyond its block's";
  }
  if (record.type == LogType::filler) return nullptr;
  if (record.length < sizeof(LogRecord) ||
      record.length < LogRecord::bytes(record.key_bytes, record.payload_bytes)) {
    return "has a length that is too short for its key and payload";
  }
  if (record.type == LogType::add) {
    const uint32_t bytes = increment_bytes(static_cast<IncrementType>(record.number));
    if (bytes == 0 || bytes != record.payload_bytes) return "adds a number of an unknown type";
  }
  if (Vid(record.vid).epoch() != epoch) return "is of another epoch than its block";
  return nullptr;
}

/// Maximum number of blocks that the search for a marker goes back. If it finds no marker there,
/// the reader does not skip the covered blocks but reads them.
constexpr uint64_t kMostBlocksBack = 4096;

}  // namespace

std::optional<std::string> defect_of_records(const LogBlock& block) {
  CHECK(block.header.length <= kLogBlockPayload);
  for (uint32_t offset = 0; offset < block.header.length;) {
    const uint32_t room = block.header.length - offset;
    const auto& record = *reinterpret_cast<const LogRecord*>(block.payload + offset);
    const char* defect = room < kMinLogRecordBytes ? "is cut off by its block's end"
                                                   : defect_of(record, room, block.header.epoch);
    if (defect != nullptr)
      return fmt::format("the record at byte {} of its payload {}", offset, defect);
    offset += record.length;
  }
  return std::nullopt;
}

LogReader::LogReader(FileSystem& file_system, LogStream stream)
    : file_system_(&file_system), stream_(std::move(stream)) {
  if (stream_.start_epoch) last_epoch_ = closed_epoch_ = *stream_.start_epoch - 1;
}

Result<LogReader> LogReader::open(FileSystem& file_system, LogStream stream,
                                  CoveredBlocks covered) {
  LogReader reader(file_system, std::move(stream));
  const std::string directory = node_directory(reader.stream_.directory, reader.stream_.node);
  ATOLL_ASSIGN(const bool found, file_system.exists(directory));
  if (found) {
    ATOLL_ASSIGN(auto names, file_system.list(directory));
    for (const std::string& name : names) {
      const auto parsed = parse_log_file_name(name);
      if (parsed && parsed->incarnation == reader.stream_.incarnation &&
          parsed->logger == reader.stream_.logger) {
        reader.ordinals_.push_back(parsed->ordinal);
      }
    }
  }
  std::ranges::sort(reader.ordinals_);
  if (reader.stream_.covered_epoch != 0 && !reader.ordinals_.empty()) {
    reader.may_skip_ = covered == CoveredBlocks::skip;
    ATOLL_ASSIGN(auto first, reader.find_first_file());
    reader.first_ordinal_ = first;
  }
  ATOLL_TRY(reader.open_file(reader.first_ordinal_));
  return reader;
}

Result<LogReader> LogReader::open_one_file(FileSystem& file_system, LogStream stream,
                                           uint32_t ordinal) {
  // The header of the file then needs no earlier file (chain_first_header).
  stream.covered_epoch = kMaxEpoch;
  LogReader reader(file_system, std::move(stream));
  CHECK(!reader.may_skip_);
  reader.ordinals_ = {ordinal};
  reader.first_ordinal_ = ordinal;
  ATOLL_TRY(reader.open_file(ordinal));
  return reader;
}

Result<void> LogReader::open_file(uint32_t ordinal) {
  const LogFileName name = {stream_.incarnation, stream_.logger, ordinal};
  file_.reset();
  path_ = path_in(node_directory(stream_.directory, stream_.node), to_string(name));
  ordinal_ = ordinal;
  position_ = buffer_offset_ = buffer_bytes_ = 0;
  if (!std::ranges::binary_search(ordinals_, ordinal)) return {};
  ATOLL_ASSIGN(auto file, file_system_->open_for_reading(path_));
  file_ = std::move(file);
  return {};
}

Result<const LogBlock*> LogReader::read_block() {
  CHECK(file_ != nullptr);
  const uint64_t offset = position_ * kLogBlockBytes;
  if (!is_buffered(position_)) {
    ATOLL_ASSIGN(const uint64_t count, file_->read(offset, buffer_.bytes()));
    buffer_offset_ = offset;
    buffer_bytes_ = count;
    if (count < kLogBlockBytes) return nullptr;
  }
  const std::byte* block = &buffer_.bytes()[offset - buffer_offset_];
  // Prefetches the next block into the processor's cache while the caller works on this one. The
  // read has put that block into memory only, and a checksum takes less time than loading it.
  if (offset + 2 * kLogBlockBytes <= buffer_offset_ + buffer_bytes_) {
    for (uint32_t line = 0; line < kLogBlockBytes; line += 64) {
      __builtin_prefetch(block + kLogBlockBytes + line);
    }
  }
  return reinterpret_cast<const LogBlock*>(block);
}

Result<const LogBlock*> LogReader::next() {
  if (end_) return nullptr;
  if (may_skip_ && position_ == 1) {
    may_skip_ = false;
    ATOLL_TRY(skip_covered_blocks());
  }
  if (blocks_per_file_ != 0 && position_ == blocks_per_file_) {
    ATOLL_TRY(open_file(ordinal_ + 1));
  }
  CHECK(blocks_per_file_ == 0 || position_ < blocks_per_file_);
  if (!file_) {
    const bool more = !ordinals_.empty() && ordinals_.back() > ordinal_;
    return end_here(ordinal_ == first_ordinal_ || more, "the file is missing");
  }
  auto block = read_block();
  if (!block) return block;
  if (*block == nullptr) {
    // If a later file has no block, this is not a defect: a crash cut it short before its first
    // sync.
    return end_here(position_ != 0 || ordinal_ == first_ordinal_, "the file ends here");
  }
  if (is_zero(**block)) {
    return end_here(ordinal_ == first_ordinal_ && position_ == 0, "nothing is written here");
  }
  const char* defect = defect_of(**block);
  if (defect == nullptr) defect = chain(**block);
  if (defect != nullptr) return end_here(true, defect);
  if ((*block)->header.type == LogBlockType::records) {
    if (auto record = defect_of_records(**block)) return end_here(true, *std::move(record));
  }
  CHECK(closed_epoch_ <= last_epoch_);
  ++position_;
  return *block;
}

const LogBlock* LogReader::end_here(bool is_defect, std::string reason) {
  CHECK(!end_);
  end_ = LogEnd{path_, position_ * kLogBlockBytes, is_defect, std::move(reason)};
  return nullptr;
}

const char* LogReader::defect_of(const LogBlock& block) const {
  const LogBlockHeader& header = block.header;
  if (header.magic != kLogBlockMagic) return "no block of a log begins here";
  if (header.version != kLogFormatVersion) return "the block's format has another version";
  if (header.length > kLogBlockPayload) return "the block's length is beyond its end";
  if (header.crc != crc_of(block) && !fault::unchecked_checksum) {
    return "the block's checksum is wrong";
  }
  if (header.incarnation != stream_.incarnation) return "the block is of another incarnation";
  if (header.node != stream_.node || header.logger != stream_.logger) {
    return "the block is of another logger";
  }
  return nullptr;
}

const char* LogReader::chain(const LogBlock& block) {
  const LogBlockHeader& header = block.header;
  if (header.file_ordinal != ordinal_) return "the block is of another file of its logger";
  // If earlier files were deleted or skipped, chain_first_header checks the sequence.
  const bool begins_late = ordinal_ == first_ordinal_ && ordinal_ != 0 && position_ == 0;
  if (header.sequence != next_sequence_ && !begins_late && !fault::unchecked_sequence) {
    return "the block is not the successor of the one before";
  }
  if ((header.type == LogBlockType::file_header) != (position_ == 0)) {
    return position_ == 0 ? "the file does not begin with a header"
                          : "a header lies in the middle of the file";
  }
  if (header.type == LogBlockType::file_header) {
    if (const char* defect = chain_header(block)) return defect;
  } else if (header.type == LogBlockType::records || header.type == LogBlockType::marker) {
    if (header.epoch <= closed_epoch_) return "the block's epoch was closed before";
    if (header.epoch < last_epoch_) return "the block's epoch is before its predecessor's";
    if (header.durable_epoch > closed_epoch_)
      return "the block names an epoch as durable that is not closed";
    last_epoch_ = header.epoch;
    if (header.type == LogBlockType::marker) closed_epoch_ = header.epoch;
  } else {
    return "the block has an unknown type";
  }
  next_sequence_ = header.sequence + 1;
  return nullptr;
}

const char* LogReader::chain_header(const LogBlock& block) {
  LogFileHeader header;
  if (block.header.length != sizeof header) return "the file's header has another size";
  std::memcpy(&header, block.payload, sizeof header);
  ClusterUuid uuid;
  std::ranges::copy(header.cluster_uuid, uuid.begin());
  const uint64_t blocks = header.file_bytes / kLogBlockBytes;
  if (header.file_bytes % kLogBlockBytes != 0 || blocks < 2 || header.start_epoch == 0) {
    return "the file's header has invalid values";
  }
  if (blocks_per_file_ != 0 && blocks != blocks_per_file_) {
    return "the file's header names another size than its predecessor's";
  }
  if (stream_.start_epoch.value_or(header.start_epoch) != header.start_epoch) {
    return "the file's header names another start epoch";
  }
  if (stream_.cluster_uuid.value_or(uuid) != uuid) return "the file belongs to another cluster";
  if (!stream_.start_epoch) last_epoch_ = closed_epoch_ = header.start_epoch - 1;
  if (ordinal_ == first_ordinal_ && ordinal_ != 0) {
    blocks_per_file_ = blocks;
    if (const char* defect = chain_first_header(block)) return defect;
  } else if (block.header.last_epoch_before != 0 && block.header.last_epoch_before != last_epoch_ &&
             stream_.start_epoch) {
    return "the file's header names another last epoch than its predecessor had";
  }
  if (block.header.epoch != closed_epoch_) {
    return "the file's header names another epoch than its predecessor closed last";
  }
  stream_.start_epoch = header.start_epoch;
  stream_.cluster_uuid = uuid;
  blocks_per_file_ = blocks;
  return nullptr;
}

const char* LogReader::chain_first_header(const LogBlock& block) {
  const LogBlockHeader& header = block.header;
  if (header.sequence != ordinal_ * blocks_per_file_) {
    return "the file's header has a sequence number that does not fit its ordinal";
  }
  if (header.last_epoch_before < header.epoch || header.last_epoch_before > stream_.covered_epoch) {
    return "the files before it are missing, and held epochs that no snapshot covers";
  }
  last_epoch_ = header.last_epoch_before;
  closed_epoch_ = header.epoch;
  return nullptr;
}

// The functions below skip blocks that a snapshot covers. They find these blocks by file headers
// and by a binary search, so they read only a few blocks, even of long files. Damage to skipped
// blocks does not matter, because the snapshot has their records. If damage misleads the search,
// the reader skips fewer blocks.

Result<uint32_t> LogReader::find_first_file() const {
  CHECK(!ordinals_.empty());
  if (!may_skip_) return ordinals_.front();
  for (auto at = ordinals_.rbegin(); at != ordinals_.rend(); ++at) {
    const LogFilePlace place = {
        stream_.directory, stream_.node, {stream_.incarnation, stream_.logger, *at}};
    ATOLL_ASSIGN(auto begin, begin_of(*file_system_, place));
    if (!begin || (stream_.cluster_uuid && begin->cluster_uuid != *stream_.cluster_uuid)) {
      continue;
    }
    // These conditions are the same as in chain_first_header.
    if (begin->last_epoch_before >= begin->closed_epoch &&
        begin->last_epoch_before <= stream_.covered_epoch) {
      return *at;
    }
  }
  return ordinals_.front();
}

bool LogReader::is_covered(const LogBlock& block, uint64_t position) const {
  const LogBlockHeader& header = block.header;
  return header.type != LogBlockType::file_header && header.epoch <= stream_.covered_epoch &&
         header.file_ordinal == ordinal_ &&
         header.sequence == ordinal_ * blocks_per_file_ + position && defect_of(block) == nullptr;
}

Result<void> LogReader::skip_covered_blocks() {
  CHECK(file_ != nullptr && ordinal_ == first_ordinal_ && blocks_per_file_ != 0);
  CHECK(first_ordinal_ >= ordinals_.front());
  skipped_blocks_ = (first_ordinal_ - ordinals_.front()) * blocks_per_file_;
  const auto read = [&](uint64_t first, uint64_t count) -> Result<uint64_t> {
    buffer_offset_ = first * kLogBlockBytes;
    auto bytes = file_->read(buffer_offset_, buffer_.bytes().first(count * kLogBlockBytes));
    buffer_bytes_ = bytes.value_or(0);
    if (!bytes) return bytes;
    return *bytes / kLogBlockBytes;
  };
  const auto block_at = [&](uint64_t index) -> const LogBlock& {
    return reinterpret_cast<const LogBlock*>(buffer_.bytes().data())[index];
  };
  // Epochs do not descend, so a binary search finds the last covered block.
  uint64_t last = 0;
  for (uint64_t end = blocks_per_file_; end - last > 1;) {
    const uint64_t middle = last + (end - last) / 2;
    ATOLL_ASSIGN(const uint64_t count, read(middle, 1));
    const bool is_before = count == 1 && is_covered(block_at(0), middle);
    (is_before ? last : end) = middle;
  }
  // Searches backward for the last marker up to block `last`. The reader must begin at a marker,
  // because only a marker tells which epochs are closed.
  for (uint64_t end = last + 1; end > 1 && last + 1 - end <= kMostBlocksBack;) {
    const uint64_t first = end > kBlocksAtOnce ? end - kBlocksAtOnce : 1;
    ATOLL_ASSIGN(const uint64_t count, read(first, end - first));
    for (uint64_t index = std::min(count, end - first); index-- > 0;) {
      const LogBlockHeader& header = block_at(index).header;
      if (header.type != LogBlockType::marker || !is_covered(block_at(index), first + index)) {
        continue;
      }
      // The next call of next() returns this marker.
      position_ = first + index;
      CHECK(position_ < blocks_per_file_);
      skipped_blocks_ += position_ - 1;
      next_sequence_ = header.sequence;
      closed_epoch_ = std::max(closed_epoch_, header.epoch - 1);
      last_epoch_ = std::max(last_epoch_, closed_epoch_);
      return {};
    }
    end = first;
  }
  return {};
}

/// Skips a hole of the file, which reads as zeros. A block of zeros is never intact, so reading the
/// hole would give the same result. Everything outside holes is read, because after a crash it is
/// unknown which blocks were written.
Result<void> LogReader::skip_hole() {
  if (is_buffered(position_)) return {};
  ATOLL_ASSIGN(const uint64_t size, file_->size());
  const uint64_t offset = position_ * kLogBlockBytes;
  if (offset >= size) return {};
  ATOLL_ASSIGN(const uint64_t data, file_->next_data(offset));
  CHECK(data >= offset);
  position_ = data / kLogBlockBytes;  // the block that holds the first data
  return {};
}

Result<LogRemainder> LogReader::read_remainder() {
  CHECK(end_);
  LogRemainder remainder;
  for (auto next = std::ranges::lower_bound(ordinals_, ordinal_); next != ordinals_.end(); ++next) {
    if (*next != ordinal_ || !file_) {
      ATOLL_TRY(open_file(*next));
    }
    for (;; ++position_) {
      ATOLL_TRY(skip_hole());
      ATOLL_ASSIGN(auto block, read_block());
      if (block == nullptr) break;
      if (defect_of(*block) != nullptr) continue;
      const LogBlockHeader& header = block->header;
      ++remainder.intact_blocks;
      remainder.largest_epoch = std::max(remainder.largest_epoch, header.epoch);
      remainder.largest_durable_epoch =
          std::max(remainder.largest_durable_epoch, header.durable_epoch);
    }
    file_.reset();
  }
  return remainder;
}

}  // namespace atolldb
