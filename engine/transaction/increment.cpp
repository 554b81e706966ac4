#include "engine/transaction/increment.h"

#include <cstring>

namespace atolldb {

namespace {
template <typename T>
void add(const void* value, const void* delta, void* out) {
  T left;
  T right;
  std::memcpy(&left, value, sizeof(T));
  std::memcpy(&right, delta, sizeof(T));
  left = static_cast<T>(left + right);
  std::memcpy(out, &left, sizeof(T));
}
}  // namespace

uint32_t increment_bytes(IncrementType type) {
  switch (type) {
    case IncrementType::i32:
    case IncrementType::u32:
      return 4;
    case IncrementType::i64:
    case IncrementType::u64:
    case IncrementType::f64:
      return 8;
    case IncrementType::none:
      break;
  }
  return 0;
}

void add_increment(IncrementType type, const void* value, const void* delta, void* out) {
  switch (type) {
    // Unsigned arithmetic gives the same bits, and its overflow is defined.
    case IncrementType::i32:
    case IncrementType::u32:
      return add<uint32_t>(value, delta, out);
    case IncrementType::i64:
    case IncrementType::u64:
      return add<uint64_t>(value, delta, out);
    case IncrementType::f64:
      return add<double>(value, delta, out);
    case IncrementType::none:
      return;
  }
}

}  // namespace atolldb
