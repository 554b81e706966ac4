// Sessions and connections behind the handles of the C interface.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "shared/base/fork_count.h"
#include "shared/c_client/failure.h"
#include "shared/client/client_transport.h"
#include "shared/client/connection_string.h"

namespace atolldb::c_client {

/// A request whose reply goes to a callback of the user.
class Awaited {
 public:
  static constexpr size_t kTaken = ~size_t{0};

  virtual ~Awaited() = default;
  /// Runs the callback. Called once.
  virtual void deliver(SessionReply reply) noexcept = 0;

  /// Place in Session::awaited_. Guarded by the mutex of the session. kTaken: it is not there.
  size_t place = kTaken;
};

/// A session, its requests with callbacks, and the requests whose callers have stopped waiting.
/// Thread: any.
class Session {
 public:
  explicit Session(std::unique_ptr<ClientTransport> client);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  ClientTransport& client() { return *client_; }
  /// Returns false in a child process of the one that has opened the session.
  bool is_own() const { return fork_count() == forks_; }

  /// Submits a request whose reply the caller waits for. Frees the slots of abandoned requests
  /// first. Errors: as ClientTransport::submit.
  std::expected<SessionTicket, Status> submit(std::string_view procedure,
                                              std::span<const std::byte> input,
                                              const SessionOptions& options);
  /// Submits a request whose reply goes to `awaited`. After an error, `awaited` gets none.
  std::expected<void, Status> submit(std::string_view procedure, std::span<const std::byte> input,
                                     const SessionOptions& options,
                                     const std::shared_ptr<Awaited>& awaited);
  /// Submits a request whose reply is discarded.
  std::expected<void, Status> send_only(std::string_view procedure,
                                        std::span<const std::byte> input,
                                        const SessionOptions& options);
  /// Takes over a request whose caller no longer waits. Its slot is free after the reply.
  void abandon(SessionTicket ticket);
  /// Delivers outcome_unknown to all requests with callbacks that have no reply. Later submissions
  /// with callbacks are unavailable.
  void end_callbacks();

 private:
  std::expected<SessionTicket, Status> submit_now(std::string_view procedure,
                                                  std::span<const std::byte> input,
                                                  const SessionOptions& options,
                                                  ClientTransport::Callback callback);
  /// Fetches the replies of abandoned requests that have arrived. Returns their number.
  size_t fetch_abandoned();
  /// Returns whether the caller must deliver: the first call for a request returns true.
  bool take(const std::shared_ptr<Awaited>& awaited);

  std::unique_ptr<ClientTransport> client_;
  const uint32_t forks_ = fork_count();
  std::mutex mutex_;                               // not held while callbacks run
  std::vector<SessionTicket> abandoned_;           // guarded by mutex_
  std::vector<std::shared_ptr<Awaited>> awaited_;  // guarded by mutex_; in no order
  bool has_ended_ = false;                         // guarded by mutex_; callbacks are refused
};

/// A connection: the current session with one node, or none after `close`. Thread: any.
class Connection {
 public:
  static Checked<std::shared_ptr<Connection>> open(ConnectionTarget target);

  /// Returns the current session, or ATOLL_CLOSED.
  Checked<std::shared_ptr<Session>> session() const;
  void close();
  /// Replaces a session that has ended. Returns whether the new one has another incarnation.
  Checked<bool> reconnect(std::chrono::milliseconds patience);
  const ConnectionTarget& target() const { return target_; }
  /// Incarnation of the latest session, also after `close`.
  uint64_t incarnation() const { return incarnation_.load(std::memory_order_relaxed); }
  /// Node of the latest session, also after `close`.
  uint32_t node() const { return node_.load(std::memory_order_relaxed); }

 private:
  Connection(ConnectionTarget target, std::shared_ptr<Session> session);

  const ConnectionTarget target_;
  std::atomic<uint64_t> incarnation_;
  std::atomic<uint32_t> node_;
  std::timed_mutex reconnect_mutex_;  // held during an attempt to connect, taken before mutex_
  mutable std::mutex mutex_;
  std::shared_ptr<Session> session_;  // guarded by mutex_
};

}  // namespace atolldb::c_client

/// The handle. Scans, transactions and pending requests share what they need of it.
struct AtollConnection {
  std::shared_ptr<atolldb::c_client::Connection> connection;
};
