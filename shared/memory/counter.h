// A counter with one writer, which needs no read-modify-write. May live in a segment.
#pragma once

#include <atomic>
#include <cstdint>

namespace atolldb {

class Counter {
 public:
  void add(uint64_t amount = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace atolldb
