// Leaves out what later records of the same batch make superfluous (foedus.txt section 7.3; R35).
#pragma once

#include <span>

#include "engine/gleaner/gleaned_record.h"

namespace atolldb {

/// `sorted`: records of one storage, in sort order. Moves those to keep to its end, in order, and
/// returns them: a record is left out only if one that is kept covers it, so the last insert or
/// erase of a key, and what came after it, stays. Sequential appends all stay.
std::span<SortKey> compact(std::span<SortKey> sorted);

}  // namespace atolldb
