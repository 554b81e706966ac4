// The records of a block, one after the other.
#pragma once

#include <optional>
#include <string>

#include "engine/log/log_block.h"

namespace atolldb {

/// What is wrong with the records of `block`, whose length is within kLogBlockPayload; nothing when
/// they fill its length exactly, and each is well-formed and of the block's epoch. Fillers have 8
/// bytes or more, and their other fields mean nothing.
std::optional<std::string> defect_of_records(const LogBlock& block);

/// Calls `visit(const LogRecord&)` for each, fillers included (of which only type and length may be
/// read). REQUIRES: no defect_of_records.
template <typename Visit>
void for_each_record(const LogBlock& block, Visit visit) {
  for (uint32_t offset = 0; offset < block.header.length;) {
    const auto& record = *reinterpret_cast<const LogRecord*>(block.payload + offset);
    visit(record);
    offset += record.length;
  }
}

}  // namespace atolldb
