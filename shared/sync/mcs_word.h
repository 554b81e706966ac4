// The 8-byte lock word of records and pages. The protocol is in mcs_lock.h.
#pragma once

#include <atomic>
#include <cstdint>

namespace atolldb {

/// Tail of the queue of waiters: worker id 16 | block index 16, in the low 32 bits. 0: unlocked
/// (block indexes start at 1, R25). Changed by compare-and-swap and exchange, by many writers.
struct McsWord {
  std::atomic<uint64_t> tail{0};

  bool is_locked() const { return tail.load(std::memory_order_seq_cst) != 0; }
};
static_assert(sizeof(McsWord) == 8);

}  // namespace atolldb
