// Compaction: elides records that later records of the same batch make redundant (R35). Source:
// [FOEDUS15] section 7.3.
#pragma once

#include <span>

#include "engine/gleaner/gleaned_record.h"

namespace atolldb {

/// Compacts records of one storage, `sorted` in sort order. Moves the records to keep to the end of
/// the span, in order, and returns them. A record is elided only if a kept record covers it. So the
/// last insert or erase of a key, and all records after it, are kept. Sequential appends are all
/// kept.
std::span<SortKey> compact(std::span<SortKey> sorted);

}  // namespace atolldb
