// Iterates over the records of a log block and verifies them.
#pragma once

#include <optional>
#include <string>

#include "engine/format/log_block.h"

namespace atolldb {

/// Returns the first defect of the block's records, or nothing if there is none. Without a defect
/// the records fill the length exactly, and each is well-formed and has the block's epoch. A filler
/// has at least 8 bytes; its fields other than type and length are undefined. REQUIRES: the length
/// is at most kLogBlockPayload.
std::optional<std::string> defect_of_records(const LogBlock& block);

/// Calls `visit(const LogRecord&)` for each record, fillers included. Of a filler only type and
/// length may be read. REQUIRES: defect_of_records returns nothing.
template <typename Visit>
void for_each_record(const LogBlock& block, Visit visit) {
  for (uint32_t offset = 0; offset < block.header.length;) {
    const auto& record = *reinterpret_cast<const LogRecord*>(block.payload + offset);
    visit(record);
    offset += record.length;
  }
}

}  // namespace atolldb
