// In-memory log records in gleaned form, as reducers pass them to composers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/format/vid.h"
#include "engine/gleaner/gleaned_record.h"
#include "shared/base/check.h"
#include "shared/base/error.h"

namespace atolldb::test {

struct GleanedLog {
  LogType type = LogType::insert;
  std::string key;  // in gleaned form
  uint16_t offset = 0;
  std::string payload;
  Vid vid;
  uint8_t number = 0;  // add: IncrementType
};

inline void sort_gleaned(std::vector<GleanedLog>& logs) {
  std::ranges::sort(logs, [](const GleanedLog& a, const GleanedLog& b) {
    const int order = a.key.compare(b.key);
    return order != 0 ? order < 0 : a.vid.version() < b.vid.version();
  });
}

/// Log source over sorted records.
class VectorLogSource : public LogSource {
 public:
  VectorLogSource(uint32_t storage_id, const std::vector<GleanedLog>& logs) {
    std::vector<size_t> places;
    for (const GleanedLog& log : logs) {
      const auto key_bytes = static_cast<uint32_t>(log.key.size());
      const auto payload_bytes = static_cast<uint32_t>(log.payload.size());
      places.push_back(words_.size());
      words_.resize(words_.size() + LogRecord::bytes(key_bytes, payload_bytes) / 8);
      auto* record = reinterpret_cast<LogRecord*>(words_.data() + places.back());
      record->type = log.type;
      record->number = log.number;
      record->key_bytes = static_cast<uint16_t>(key_bytes);
      record->length = LogRecord::bytes(key_bytes, payload_bytes);
      record->storage_id = storage_id;
      record->payload_offset = log.offset;
      record->payload_bytes = static_cast<uint16_t>(payload_bytes);
      record->vid = log.vid.word();
      if (key_bytes != 0) std::memcpy(record->key(), log.key.data(), key_bytes);
      if (payload_bytes != 0) std::memcpy(record->payload(), log.payload.data(), payload_bytes);
    }
    for (const size_t place : places) {
      keys_.push_back(SortKey::of(*reinterpret_cast<const LogRecord*>(words_.data() + place)));
    }
    CHECK(VectorLogSource::advance().has_value());
  }

  Result<void> advance() override {
    at_ += batch_.size();
    // Returns batches of several sizes, so that the records of a key or of the storage span several
    // batches.
    batch_ = std::span<const SortKey>(keys_).subspan(at_);
    batch_ = batch_.first(std::min(batch_.size(), 1 + at_ % 7));
    return {};
  }

 private:
  std::vector<uint64_t> words_;
  std::vector<SortKey> keys_;
  size_t at_ = 0;
};

inline std::string big_endian(uint64_t number) {
  number = __builtin_bswap64(number);
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace atolldb::test
