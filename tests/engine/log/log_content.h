// Content of log files, read in the simplest way, for comparison with what was committed.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "engine/format/crc32c.h"
#include "engine/format/log_block.h"
#include "engine/format/vid.h"
#include "tests/engine/log/memory_file_system.h"

namespace atolldb::test {

struct LoggedRecord {
  LogType type;
  uint32_t storage_id;
  Vid vid;
  uint64_t block_epoch;
  uint16_t payload_offset;
  std::vector<std::byte> key;
  std::vector<std::byte> payload;
};

struct LogContent {
  std::vector<LoggedRecord> records;  // of all blocks, in the order of files and offsets
  std::vector<uint64_t> markers;
  std::string defect;  // the first defect, or empty
};

/// Reads all log files of `files` in the order of their names. Skips filler records.
inline LogContent read_logs(MemoryFileSystem& files) {
  LogContent content;
  const auto defect = [&](const std::string& what) {
    if (content.defect.empty()) content.defect = what;
  };
  for (const std::string& path : files.paths()) {
    const MemoryFileSystem::Bytes& bytes = files.bytes(path);
    uint64_t last_epoch = 0;
    for (size_t at = 0; at < bytes.size(); at += kLogBlockBytes) {
      LogBlock block;
      std::memcpy(&block, bytes.data() + at, sizeof(block));
      if (block.header.magic == 0) break;
      const std::string where = path + " at " + std::to_string(at) + ": ";
      std::vector<std::byte> covered(block.payload, block.payload + block.header.length);
      const auto* header = reinterpret_cast<const std::byte*>(&block);
      covered.insert(covered.end(), header + 8, header + sizeof(LogBlockHeader));
      if (crc32c(covered) != block.header.crc) defect(where + "wrong checksum");
      if (block.header.epoch < last_epoch) defect(where + "epochs descend");
      last_epoch = block.header.epoch;
      if (block.header.type == LogBlockType::marker) content.markers.push_back(last_epoch);
      if (block.header.type != LogBlockType::records) continue;
      for (uint32_t offset = 0; offset < block.header.length;) {
        const auto& record = *reinterpret_cast<const LogRecord*>(block.payload + offset);
        offset += record.length;
        if (record.length == 0 || offset > block.header.length) {
          defect(where + "a record leaves the block");
          break;
        }
        if (record.type == LogType::filler) continue;
        const Vid vid(record.vid);
        if (vid.epoch() != last_epoch) defect(where + "a record of another epoch");
        content.records.push_back(
            {record.type, record.storage_id, vid, last_epoch, record.payload_offset,
             std::vector<std::byte>(record.key(), record.key() + record.key_bytes),
             std::vector<std::byte>(record.payload(), record.payload() + record.payload_bytes)});
      }
    }
  }
  return content;
}

}  // namespace atolldb::test
