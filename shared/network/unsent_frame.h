// Frames that were given to ZeroMQ, and that it has not written yet. ZeroMQ does not report what it
// has written, but it frees a message then. Clients and nodes limit the sum of these frames.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace atolldb {

/// Size of the frames that ZeroMQ has not written yet. Thread: any.
struct UnsentBytes {
  std::atomic<size_t> bytes{0};
};

/// A copy of a frame, which counts until ZeroMQ has written it. The sums are shared, because
/// ZeroMQ's own thread subtracts a frame after its sender has ended.
struct UnsentFrame {
  std::vector<std::byte> bytes;
  std::shared_ptr<UnsentBytes> of_peer;
  std::shared_ptr<UnsentBytes> of_all;  // of all peers; may be null

  UnsentFrame(std::span<const std::byte> frame, std::shared_ptr<UnsentBytes> peer,
              std::shared_ptr<UnsentBytes> all)
      : bytes(frame.begin(), frame.end()), of_peer(std::move(peer)), of_all(std::move(all)) {
    // Relaxed, here and below: the sums only limit memory.
    of_peer->bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
    if (of_all != nullptr) of_all->bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
  }
  UnsentFrame(const UnsentFrame&) = delete;
  UnsentFrame& operator=(const UnsentFrame&) = delete;
  ~UnsentFrame() {
    of_peer->bytes.fetch_sub(bytes.size(), std::memory_order_relaxed);
    if (of_all != nullptr) of_all->bytes.fetch_sub(bytes.size(), std::memory_order_relaxed);
  }
  /// ZeroMQ calls this function when it has written the frame.
  static void free(void*, void* frame) { delete static_cast<UnsentFrame*>(frame); }
};

}  // namespace atolldb
