#include "engine/log/log_records.h"

#include <fmt/format.h>

#include "engine/format/vid.h"

namespace atolldb {
namespace {

constexpr uint32_t kMinFillerBytes = 8;  // up to and including the length field

const char* defect_of(const LogRecord& record, uint32_t room, uint64_t epoch) {
  if (record.type > LogType::append) return "has an unknown type";
  if (record.length % 8 != 0) return "has a length that is no multiple of 8";
  if (record.length < kMinFillerBytes || record.length > room) {
    return "has a length beyond its block's";
  }
  if (record.type == LogType::filler) return nullptr;
  if (record.length < sizeof(LogRecord) ||
      record.length < LogRecord::bytes(record.key_bytes, record.payload_bytes)) {
    return "has a length that is too short for its key and payload";
  }
  if (Vid(record.vid).epoch() != epoch) return "is of another epoch than its block";
  return nullptr;
}

}  // namespace

std::optional<std::string> defect_of_records(const LogBlock& block) {
  for (uint32_t offset = 0; offset < block.header.length;) {
    const uint32_t room = block.header.length - offset;
    const auto& record = *reinterpret_cast<const LogRecord*>(block.payload + offset);
    const char* defect = room < kMinFillerBytes ? "is cut off by its block's end"
                                                : defect_of(record, room, block.header.epoch);
    if (defect != nullptr)
      return fmt::format("the record at byte {} of its payload {}", offset, defect);
    offset += record.length;
  }
  return std::nullopt;
}

}  // namespace atolldb
