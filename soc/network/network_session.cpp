#include "soc/network/network_session.h"

#include "soc/network/gateway.h"

namespace atolldb {
namespace {

/// Limit of the buffers that a call keeps for the next request. Larger ones are freed.
constexpr size_t kKeptNetworkBytes = 4096;

}  // namespace

void NetworkSession::leave_queue() { gateway_.note_room(); }

void NetworkSession::finish(SessionCall& call) {
  gateway_.take_finished(static_cast<NetworkCall&>(call));
}

NetworkCall* NetworkSession::take(size_t input_bytes) {
  if (in_flight_ >= kMaxNetworkInFlight) return nullptr;
  // A single request of any size may run.
  if (in_flight_ != 0 && in_flight_bytes_ + input_bytes > kMaxNetworkInFlightBytes) return nullptr;
  if (free_.empty()) {
    calls_.push_back(std::make_unique<NetworkCall>());
    calls_.back()->session = this;
    free_.push_back(calls_.back().get());
  }
  NetworkCall* const call = free_.back();
  free_.pop_back();
  call->in_flight.store(true, std::memory_order_relaxed);
  ++in_flight_;
  in_flight_bytes_ += input_bytes;
  return call;
}

void NetworkSession::release(NetworkCall& call) {
  DCHECK(in_flight_ > 0 && in_flight_bytes_ >= call.counted_bytes());
  --in_flight_;
  in_flight_bytes_ -= call.counted_bytes();
  call.in_flight.store(false, std::memory_order_relaxed);
  call.outcome = {};
  call.input_memory = {};
  call.input.clear();
  if (call.input.capacity() > kKeptNetworkBytes) free_buffer(call.input);
  free_.push_back(&call);
}

bool NetworkSession::is_stalled(uint64_t since_ns) const {
  // The parts of one call follow those of the call before it.
  const auto has_stalled = [&](const std::deque<NetworkCall*>& calls) {
    return !calls.empty() && calls.front()->progress_ns < since_ns;
  };
  return has_stalled(inputs) || has_stalled(outputs);
}

const NetworkCall* NetworkSession::oldest() const {
  const NetworkCall* found = nullptr;
  for (const auto& call : calls_) {
    if (!call->in_flight.load(std::memory_order_relaxed)) continue;
    if (found == nullptr || call->arrived_ns < found->arrived_ns) found = call.get();
  }
  return found;
}

}  // namespace atolldb
