// Typed increments (R33): completed under the record lock, logged as after-images.
#pragma once

#include <cstdint>

#include "engine/transaction/transaction.h"

namespace atolldb {

/// *out = *value + *delta; integers wrap around. Each is `increment_bytes(type)` bytes, needs no
/// alignment, and all may be the same.
void add_increment(IncrementType type, const void* value, const void* delta, void* out);

}  // namespace atolldb
