// Log blocks with random records, as a worker would fill them.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "engine/format/log_block.h"
#include "shared/base/check.h"

namespace atolldb::test {

struct alignas(kLogBlockBytes) AlignedBlock : LogBlock {};

/// Memory for blocks, aligned for direct I/O.
class BlockBuffer {
 public:
  explicit BlockBuffer(size_t count) : blocks_(count) {}

  std::span<LogBlock> run(size_t first, size_t count) {
    CHECK(first + count <= blocks_.size());
    static_assert(sizeof(AlignedBlock) == sizeof(LogBlock));
    return {static_cast<LogBlock*>(blocks_.data()) + first, count};
  }
  std::span<LogBlock> all() { return run(0, blocks_.size()); }

 private:
  std::vector<AlignedBlock> blocks_;
};

/// Makes `block` an empty block of records.
inline void begin_block(LogBlock& block, uint64_t epoch, uint16_t worker) {
  block.header = {};
  block.header.epoch = epoch;
  block.header.worker = worker;
  block.header.type = LogBlockType::records;
}

/// Adds a record and seals the block. Returns false if the record does not fit.
inline bool add_record(LogBlock& block, LogType type, uint32_t storage_id, uint64_t vid,
                       std::span<const std::byte> key, std::span<const std::byte> payload,
                       uint16_t payload_offset = 0) {
  const uint32_t bytes =
      LogRecord::bytes(static_cast<uint32_t>(key.size()), static_cast<uint32_t>(payload.size()));
  if (block.header.length + bytes > kLogBlockPayload) return false;
  auto* record = reinterpret_cast<LogRecord*>(block.payload + block.header.length);
  std::memset(static_cast<void*>(record), 0, bytes);
  record->type = type;
  record->key_bytes = static_cast<uint16_t>(key.size());
  record->length = bytes;
  record->storage_id = storage_id;
  record->payload_offset = payload_offset;
  record->payload_bytes = static_cast<uint16_t>(payload.size());
  record->vid = vid;
  if (!key.empty()) std::memcpy(record->key(), key.data(), key.size());
  if (!payload.empty()) std::memcpy(record->payload(), payload.data(), payload.size());
  block.header.length += bytes;
  seal_block(block);
  return true;
}

inline std::vector<std::byte> random_bytes(std::mt19937_64& random, size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// Fills `block` with records of random types, keys and payloads until one does not fit. Random
/// bytes remain after the last record. Returns the number of records.
inline uint64_t fill_block(LogBlock& block, uint64_t epoch, uint16_t worker,
                           std::mt19937_64& random) {
  begin_block(block, epoch, worker);
  for (std::byte& byte : block.payload) byte = static_cast<std::byte>(random());
  for (uint64_t count = 0;; ++count) {
    const auto type = static_cast<LogType>(1 + random() % 4);
    const auto key = random_bytes(random, type == LogType::append ? 0 : 1 + random() % 40);
    const auto payload = random_bytes(random, type == LogType::erase ? 0 : random() % 300);
    const auto storage = static_cast<uint32_t>(1 + random() % 9);
    if (!add_record(block, type, storage, epoch << 28 | count, key, payload)) return count;
  }
}

}  // namespace atolldb::test
