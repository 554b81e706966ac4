// Client side of a network session: many requests in flight to one node, over TCP with CURVE keys.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "shared/base/error.h"
#include "shared/base/unique_fd.h"
#include "shared/client/client_transport.h"
#include "shared/client/network_link.h"
#include "shared/network/wire.h"

namespace atolldb {

/// One session with one node. A thread of the client sends requests, and receives answers. It puts
/// all requests that wait into one frame, so requests of a pipeline travel together. Callbacks run
/// in the threads that call the client. Thread: any; several may call at once.
class NetworkClient final : public ClientTransport {
 public:
  /// Longest wait for the node in `connect`.
  static constexpr std::chrono::milliseconds kHandshakeTimeout{5'000};

  /// Errors: see NetworkLink::open.
  static Result<std::unique_ptr<NetworkClient>> connect(
      const NetworkAddress& address, std::chrono::milliseconds timeout = kHandshakeTimeout);
  ~NetworkClient() override;

  std::optional<SessionReply> wait_for(SessionTicket ticket,
                                       std::chrono::nanoseconds timeout) override;
  size_t dispatch(std::chrono::nanoseconds timeout) override;
  uint32_t in_flight() const override;
  bool is_open() override;
  uint64_t incarnation() const override { return session_.incarnation; }
  uint32_t node() const override { return session_.node; }
  bool may_run_jobs() const override {
    constexpr uint32_t kNeeded = kMayAdminister | kMayCallProcedures;
    return (session_.rights & kNeeded) == kNeeded;
  }
  uint32_t max_input_bytes() const override { return session_.max_input_bytes; }
  const NetworkLink::Session& session() const { return session_; }
  /// Returns the size of the parts of long inputs that the connection has not taken yet.
  size_t unsent_part_bytes() const { return link_->unsent_part_bytes(); }

 private:
  enum class Place : uint8_t { free, queued, sent, arrived };
  struct Slot {
    Place place = Place::free;
    bool has_callback = false;
    SessionTicket ticket = 0;
    std::string procedure;
    std::vector<std::byte> input;
    SessionOptions options;
    Callback callback;
    SessionReply reply;
    std::vector<std::byte> output;  // parts of a long output that have arrived

    /// Bytes that count for max_in_flight_bytes. A long input does not count.
    size_t counted_bytes() const { return input.size() > kSessionPartBytes ? 0 : input.size(); }
  };
  /// A long input that the thread sends in parts.
  struct Upload {
    SessionTicket ticket = 0;
    size_t sent_bytes = 0;
  };
  struct Ready {
    Callback callback;
    SessionTicket ticket;
    SessionReply reply;
  };
  using Lock = std::unique_lock<std::mutex>;

  NetworkClient(std::unique_ptr<NetworkLink> link, UniqueFd wake);
  std::expected<SessionTicket, Status> submit_checked(std::string_view procedure,
                                                      std::span<const std::byte> input,
                                                      const SessionOptions& options,
                                                      Callback callback) override;
  /// Puts a request into a free slot. REQUIRES: the lock is held; a slot is free.
  SessionTicket fill(std::string_view procedure, std::span<const std::byte> input,
                     const SessionOptions& options, Callback callback);
  /// Runs the callbacks whose replies have arrived, without the lock. Returns their number.
  size_t run_ready(Lock& lock);
  /// Waits for a change, at most until this time. REQUIRES: the lock is held.
  void wait_for_change(Lock& lock, std::chrono::steady_clock::time_point until);
  SessionReply fetch(Slot& slot);
  void wake() const;

  // The next functions run in the client's thread.
  void run();
  bool send_queued();
  /// Gives parts of the oldest long input to ZeroMQ, while they fit into the window of the link.
  bool send_parts();
  bool receive_answers();
  void take_part(const WirePart& part);
  void take_answer(const WireAnswer& answer);
  /// Moves a reply to its waiting thread or callback. REQUIRES: mutex_ is held.
  void arrive(Slot& slot, SessionReply reply);
  /// Ends all requests in flight.
  void lose_all(const std::string& why);
  /// Returns whether nothing waits to be sent. Then `submit` wakes the thread from now on.
  bool may_sleep();

  const std::unique_ptr<NetworkLink> link_;  // used by the thread only; the sum of parts by any
  const NetworkLink::Session session_;
  const UniqueFd wake_;
  WireWriter writer_;           // used by the thread only
  WireFrame received_;          // used by the thread only
  std::deque<Upload> uploads_;  // used by the thread only
  std::string why_ended_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Slot, kMaxNetworkInFlight> slots_;  // guarded by mutex_
  std::vector<uint32_t> free_;                   // guarded by mutex_; last in, first out
  std::vector<uint32_t> queued_;                 // guarded by mutex_; slots to be sent
  std::vector<Ready> ready_;                     // guarded by mutex_
  uint64_t next_ = 1;                            // guarded by mutex_
  uint32_t in_flight_ = 0;                       // guarded by mutex_
  size_t in_flight_bytes_ = 0;                   // guarded by mutex_
  uint32_t waiting_threads_ = 0;                 // guarded by mutex_
  bool sleeps_ = false;                          // guarded by mutex_; `submit` must wake the thread
  bool has_ended_ = false;                       // guarded by mutex_
  bool stops_ = false;                           // guarded by mutex_
  std::thread thread_;
};

}  // namespace atolldb
