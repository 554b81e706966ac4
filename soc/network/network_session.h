// A network session on the node's side: its client, its requests in flight, and its answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shared/base/check.h"
#include "shared/memory/epoch_stages.h"
#include "shared/network/wire.h"
#include "soc/session/request_sink.h"

namespace atolldb {

class NetworkGateway;
class NetworkSession;
struct UnsentBytes;

struct NetworkCall : SessionCall {
  NetworkSession* session = nullptr;

  /// Bytes of the input that count for the limits of a session and of the node. A long input counts
  /// in PayloadMemory instead, from its first part on.
  size_t counted_bytes() const { return input_memory.bytes() != 0 ? 0 : input.size(); }
};

/// What the gateway knows about the client.
struct NetworkPeer {
  std::string routing_id;  // ZeroMQ's name of the connection
  std::string connection;  // the gateway's name of the connection; never reused
  std::string address;     // "10.1.2.3:4567"; empty: unknown
  std::string program;     // as the client has told
  std::string key_name;    // name in the file of authorised keys; empty without keys
  uint32_t rights = 0;
  int fd = -1;  // of the connection; owned by ZeroMQ
};

/// Thread: the gateway's. Only `leave_queue` and `finish` are called by others.
class NetworkSession final : public CallOwner {
 public:
  NetworkSession(NetworkGateway& gateway, uint32_t session_number, NetworkPeer its_peer,
                 std::shared_ptr<UnsentBytes> its_unsent)
      : number(session_number),
        peer(std::move(its_peer)),
        unsent(std::move(its_unsent)),
        gateway_(gateway) {}
  NetworkSession(const NetworkSession&) = delete;
  NetworkSession& operator=(const NetworkSession&) = delete;
  ~NetworkSession() override { DCHECK(in_flight_ == 0); }

  void leave_queue() override;
  void finish(SessionCall& call) override;

  /// Returns a call for a request with an input of so many bytes (without those of a long input,
  /// which has a limit of its own: PayloadMemory), or null if the session has
  /// reached one of its limits. The call is in flight until `release`.
  NetworkCall* take(size_t input_bytes);
  void release(NetworkCall& call);
  uint32_t in_flight() const { return in_flight_; }
  /// Returns the oldest call in flight, or null.
  const NetworkCall* oldest() const;
  /// Returns whether the client has neither sent nor taken the next part since this time.
  bool is_stalled(uint64_t since_ns) const;

  const uint32_t number;
  NetworkPeer peer;
  const uint64_t opened_ns = monotonic_time_ns();
  uint64_t last_arrived_ns = 0;               // 0: no request has arrived
  uint64_t answered = 0;                      // requests that were answered
  bool has_ended = false;                     // the client gets no more answers
  const std::shared_ptr<UnsentBytes> unsent;  // frames that ZeroMQ has not written yet
  std::vector<NetworkCall*> done;             // calls whose answers are to be sent
  bool takes_parts = false;                   // the client takes outputs in parts
  std::deque<NetworkCall*> inputs;            // calls whose inputs have not arrived in full
  std::deque<NetworkCall*> outputs;           // calls whose outputs are sent in parts, in turn

 private:
  NetworkGateway& gateway_;
  std::vector<std::unique_ptr<NetworkCall>> calls_;  // at most kMaxNetworkInFlight
  std::vector<NetworkCall*> free_;
  uint32_t in_flight_ = 0;
  size_t in_flight_bytes_ = 0;
};

}  // namespace atolldb
