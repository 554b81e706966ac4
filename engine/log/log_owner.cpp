#include "engine/log/log_owner.h"

#include <algorithm>
#include <cstring>

#include "engine/format/block_checksum.h"
#include "engine/format/log_block.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

std::string path_of(const LogFilePlace& place) {
  return path_in(node_directory(place.directory, place.node), to_string(place.name));
}

Result<std::optional<LogFileBegin>> begin_of(FileSystem& file_system, const LogFilePlace& place) {
  ATOLL_ASSIGN(auto file, file_system.open_for_reading(path_of(place)));
  IoBuffer buffer(sizeof(LogBlock));  // aligned, so that the read bypasses the page cache
  ATOLL_ASSIGN(auto count, file->read(0, buffer.bytes()));
  const auto* block = reinterpret_cast<const LogBlock*>(buffer.bytes().data());
  const LogBlockHeader& header = block->header;
  LogFileHeader content;
  if (count < sizeof(LogBlock) || header.magic != kLogBlockMagic ||
      header.version != kLogFormatVersion || header.type != LogBlockType::file_header ||
      header.length != sizeof content || header.crc != crc_of(*block)) {
    return std::nullopt;
  }
  if (header.incarnation != place.name.incarnation || header.node != place.node ||
      header.logger != place.name.logger || header.file_ordinal != place.name.ordinal) {
    return std::nullopt;
  }
  std::memcpy(&content, block->payload, sizeof content);
  LogFileBegin begin = {{}, header.epoch, header.last_epoch_before};
  std::ranges::copy(content.cluster_uuid, begin.cluster_uuid.begin());
  return begin;
}

Result<std::optional<ClusterUuid>> owner_of(FileSystem& file_system, const LogFilePlace& place) {
  ATOLL_ASSIGN(auto begin, begin_of(file_system, place));
  if (!begin) return std::nullopt;
  return begin->cluster_uuid;
}

Result<bool> is_foreign(FileSystem& file_system, const LogFilePlace& place,
                        const ClusterUuid& own) {
  ATOLL_ASSIGN(auto owner, owner_of(file_system, place));
  return owner.has_value() && *owner != own;
}

}  // namespace atolldb
