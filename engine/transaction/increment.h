// Typed increments (R33): computed under the record lock, logged as after-images.
#pragma once

#include <cstdint>

#include "engine/transaction/transaction.h"

namespace atolldb {

/// *out = *value + *delta. Integers wrap around. Each operand has `increment_bytes(type)` bytes and
/// needs no alignment. The pointers may be equal.
void add_increment(IncrementType type, const void* value, const void* delta, void* out);

}  // namespace atolldb
