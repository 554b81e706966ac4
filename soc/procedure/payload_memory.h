// Limit of the memory that large inputs and outputs of procedures take on a node.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/base/check.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

/// Frees the memory of a buffer. An assignment of {} would keep it.
inline void free_buffer(std::vector<std::byte>& buffer) { buffer = std::vector<std::byte>(); }

/// Counts the bytes of all inputs and outputs that are longer than one part (kSessionPartBytes). An
/// input counts until its request is answered, or until the first part of a long output is sent. An
/// output counts until its client has taken it.
/// Thread: any.
class PayloadMemory {
 public:
  /// Bytes that one input or output takes. Its end gives them back. REQUIRES: the PayloadMemory
  /// outlives it.
  class Share {
   public:
    Share() = default;
    Share(Share&& from) noexcept
        : memory_(std::exchange(from.memory_, nullptr)), bytes_(std::exchange(from.bytes_, 0)) {}
    Share& operator=(Share&& from) noexcept {
      Share other(std::move(from));
      std::swap(memory_, other.memory_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (memory_ != nullptr) memory_->give_back(bytes_);
    }

    uint64_t bytes() const { return bytes_; }

   private:
    friend class PayloadMemory;
    Share(PayloadMemory& memory, uint64_t bytes) : memory_(&memory), bytes_(bytes) {}
    /// Returns the bytes, which the caller now owns.
    uint64_t take_over() {
      memory_ = nullptr;
      return std::exchange(bytes_, 0);
    }

    PayloadMemory* memory_ = nullptr;
    uint64_t bytes_ = 0;
  };

  /// `metrics`: shows the memory to other processes; null: nothing does. REQUIRES: it outlives this
  /// object.
  explicit PayloadMemory(uint64_t limit_bytes, PayloadMetrics* metrics = nullptr)
      : limit_(limit_bytes), metrics_(metrics) {
    // Relaxed, here and below: for display.
    if (metrics_ != nullptr) metrics_->limit_bytes.store(limit_, std::memory_order_relaxed);
  }
  PayloadMemory(const PayloadMemory&) = delete;
  PayloadMemory& operator=(const PayloadMemory&) = delete;
  ~PayloadMemory() { DCHECK(used() == 0); }

  /// Returns whether the limit leaves room. If so, `share` has the bytes, and has given back those
  /// that it had before.
  bool take(uint64_t bytes, Share& share) {
    share = {};
    return grow(bytes, share);
  }
  /// Returns whether the limit leaves room. If so, `share` has that many bytes more.
  bool grow(uint64_t bytes, Share& share) {
    DCHECK(share.memory_ == nullptr || share.memory_ == this);
    // Relaxed, here and below: the sum only limits memory.
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (!has_room(bytes, used)) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    if (metrics_ != nullptr) metrics_->used_bytes.fetch_add(bytes, std::memory_order_relaxed);
    share = Share(*this, share.take_over() + bytes);
    return true;
  }
  /// Returns whether the limit leaves room now. Takes nothing.
  bool has_room(uint64_t bytes) const { return has_room(bytes, used()); }
  /// Counts an input or an output for which there was no room. Returns the error text.
  std::string refuse(std::string_view what, uint64_t bytes) {
    if (metrics_ != nullptr) metrics_->refused.fetch_add(1, std::memory_order_relaxed);
    return "its " + std::string(what) + " of " + std::to_string(bytes) +
           " bytes finds no room: others use " + std::to_string(used()) + " of " +
           std::to_string(limit()) + " bytes: try again later, or raise procedures.payload_memory";
  }

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  bool has_room(uint64_t bytes, uint64_t used) const {
    return bytes <= limit_ && used <= limit_ - bytes;
  }
  void give_back(uint64_t bytes) {
    [[maybe_unused]] const uint64_t before = used_.fetch_sub(bytes, std::memory_order_relaxed);
    DCHECK(before >= bytes);
    if (metrics_ != nullptr) metrics_->used_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  }

  const uint64_t limit_;
  PayloadMetrics* const metrics_;
  std::atomic<uint64_t> used_{0};
};

}  // namespace atolldb
