// The network port of a node: sessions over TCP, with CURVE keys (shared/network/PROTOCOL.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "shared/base/error.h"
#include "shared/base/unique_fd.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"
#include "shared/metrics/network_metrics.h"
#include "shared/network/wire.h"
#include "soc/network/administration.h"
#include "soc/network/authorisation.h"
#include "soc/network/connection_guard.h"
#include "soc/network/network_session.h"
#include "soc/session/control_queue.h"
#include "soc/session/request_sink.h"

namespace atolldb {

struct NetworkSettings {
  std::string address;          // IPv4 or IPv6 literal
  uint16_t port = 0;            // 0: a free port
  std::string key_file;         // keys of the node; empty: clients have no keys
  std::string authorised_keys;  // file of authorised clients; not empty with `key_file`
  NetworkAdministration::Endpoints endpoints;  // of the processes that serve control requests
};

/// Order of the calls: start -> stop. One thread owns all sockets and sessions. It sleeps without a
/// time-out while nothing arrives and no client is connected. Thread: any thread may call `handle`,
/// `note_room` and `take_finished`.
class NetworkGateway {
 public:
  static constexpr size_t kMaxSessions = 256;
  /// Requests in flight of all sessions together, and the bytes of their inputs.
  static constexpr size_t kMaxCalls = 8192;
  static constexpr size_t kMaxCallBytes = 64u << 20;
  /// Frames that wait for one client. A client that lets more wait is dropped. More than a client
  /// can have requests in flight, so it must have left answers unread.
  static constexpr int kMaxWaitingFrames = 2 * kMaxNetworkInFlight;
  /// Size of the frames that wait for one client, and for all clients together. A client that lets
  /// more wait is dropped.
  static constexpr size_t kMaxUnsentBytes = 16u << 20;
  static constexpr size_t kMaxUnsentBytesOfAll = 256u << 20;
  /// Frames of one client that ZeroMQ keeps until the gateway reads them. Then it stops reading the
  /// connection, and the client waits. Enough for four parts of an input, so that a connection has
  /// work while the gateway serves others.
  static constexpr int kMaxUnreadFrames = 4;
  /// Size of the unread frames of one connection. ZeroMQ stops when it has decoded a frame that
  /// finds no room, so it keeps one more.
  static constexpr size_t kMaxUnreadBytes = size_t{kMaxUnreadFrames + 1} * kMaxWireFrameBytes;
  /// Budget of these frames of all connections, 1.25 GiB: a gateway that gets no processor time
  /// does not use more. Past the number of connections, the guard closes them; past that of
  /// sessions, they are refused. Clients that keep to parts of 256 KiB use half of it, and sessions
  /// a quarter.
  static constexpr size_t kMaxUnreadBytesOfAll = size_t{5} << 28;
  static_assert(ConnectionGuard::kMaxConnections * kMaxUnreadBytes <= kMaxUnreadBytesOfAll);

  /// REQUIRES: `sink` and `metrics` outlive the gateway. Errors: config if a file cannot be used;
  /// resources if the port is not free, or no descriptor is left.
  static Result<std::unique_ptr<NetworkGateway>> start(NetworkSettings settings, RequestSink& sink,
                                                       NetworkMetrics& metrics, Logger logger);
  NetworkGateway(const NetworkGateway&) = delete;
  NetworkGateway& operator=(const NetworkGateway&) = delete;
  ~NetworkGateway();

  /// Returns ADDRESS:PORT.
  const std::string& endpoint() const { return endpoint_; }
  /// Returns the public key of the node as text; empty without keys.
  const std::string& public_key() const { return public_key_; }
  /// Sends the answers that are ready, and ends all sessions. REQUIRES: the workers and the queue
  /// of answers have ended, so no call runs.
  void stop();
  /// Serves `session.list` and `session.kill`. Never waits: the gateway's thread answers soon.
  void handle(const ControlRequest& request, const ControlReply& reply);

  /// A worker's queue has room. Wakes the thread if a request waits for that.
  void note_room();
  /// Takes over a call whose outcome may be sent.
  void take_finished(NetworkCall& call);

 private:
  class Sockets;
  struct Received;
  using Sessions = std::unordered_map<std::string, std::unique_ptr<NetworkSession>>;

  NetworkGateway(NetworkSettings settings, RequestSink& sink, NetworkMetrics& metrics,
                 Logger logger);
  Result<void> open();
  void run();
  void wake() const;
  bool may_sleep();

  // Requests.
  bool receive_frames();
  void take_frame(const Received& received);
  void open_session(const Received& received);
  void take_requests(NetworkSession& session);
  void take_request(NetworkSession& session, const WireRequest& request);
  /// Returns why the session may not send the request, or nothing if it may.
  static std::optional<Refusal> missing_right(const NetworkSession& session,
                                              const WireRequest& request);
  /// Gives a request to a worker or to the control requests, or refuses it.
  void submit(NetworkSession& session, NetworkCall& call, std::optional<Refusal> refusal);
  /// Takes memory for an input that follows in parts.
  std::optional<Refusal> begin_input(NetworkSession& session, NetworkCall& call,
                                     uint32_t input_bytes);
  void take_part(NetworkSession& session, const Received& received);
  void answer_now(NetworkSession& session, const WireRequest& request, Refusal refusal);
  bool submit_held();
  // Answers.
  static WireAnswer answer_of(const NetworkCall& call, uint64_t incarnation);
  bool send_answers();
  void send_done(NetworkSession& session);
  /// Sends the next parts of long outputs to all clients that have taken the earlier ones.
  bool send_parts();
  bool send_parts(NetworkSession& session);
  void release(NetworkSession& session, NetworkCall& call);
  void send(NetworkSession& session, std::span<const std::byte> frame);
  void refuse_frame(const Received& received, RefusalCode code, const std::string& why);
  /// Counts the frame, and refuses it.
  void refuse_malformed(const Received& received, const std::string& why,
                        RefusalCode code = RefusalCode::malformed);
  // Ends of sessions.
  /// Marks a session as ended. `collect_ended` removes it, when no caller uses it.
  void end(NetworkSession& session, const char* why);
  /// Tells the client why its session ends, and ends it.
  void refuse_session(NetworkSession& session, RefusalCode code, const std::string& why);
  void collect_ended();
  /// Ends the calls whose inputs or outputs have not been transferred in full.
  void drop_transfers(NetworkSession& session);
  /// Ends the sessions whose clients neither send nor take the next part.
  void end_stalled(uint64_t now_ns);
  void end_all();
  // Connections and keys.
  void serve_zap();
  void serve_monitor();
  void serve_key_file();
  /// Shuts down connections that are past a limit.
  void guard_connections();
  /// Writes the metrics of the guard, and warns about closed connections once per minute.
  void publish_connections(uint64_t now_ns);
  void end_client_of(int fd);
  /// Sends a Probe to all clients. If a client has disconnected, its session ends.
  void probe_all();
  // Control requests: gateway_requests.cpp.
  void serve_control();
  Result<Json> answer_to(const ControlRequest& request);
  Json list_sessions() const;
  Result<Json> kill_sessions(const ControlRequest& request);
  Json kill_session(NetworkSession& session);

  const NetworkSettings settings_;
  RequestSink& sink_;
  NetworkMetrics& metrics_;
  Logger logger_;
  std::string endpoint_;
  std::string public_key_;
  UniqueFd wake_;
  std::atomic<bool> ends_{false};
  std::atomic<bool> holds_any_{false};  // a request waits for room in a worker's queue
  std::thread thread_;
  ControlQueue controls_;

  std::mutex mutex_;
  bool sleeps_ = false;                 // guarded by mutex_
  std::vector<NetworkCall*> finished_;  // guarded by mutex_

  NetworkAdministration administration_;

  // Used by the gateway's thread only.
  std::unique_ptr<Sockets> sockets_;
  std::unique_ptr<ConnectionGuard> guard_;
  std::shared_ptr<UnsentBytes> refusals_;  // frames to clients without a session
  Authorisation authorisation_;
  Sessions sessions_;  // by routing id
  /// Sessions without a client, which are freed when their calls have ended.
  std::vector<std::unique_ptr<NetworkSession>> ending_;
  std::vector<NetworkCall*> held_;        // calls that wait for room in a worker's queue
  std::vector<NetworkSession*> pending_;  // sessions with answers to send
  std::vector<NetworkCall*> taken_;       // buffer of send_answers
  WireFrame frame_;
  WireWriter writer_;
  size_t calls_ = 0;       // in flight, of all sessions
  size_t call_bytes_ = 0;  // inputs of these, without long ones
  size_t outputs_ = 0;     // calls whose outputs are sent in parts
  uint64_t next_connection_ = 1;
  uint64_t warned_ns_ = 0;           // time of the last warning about closed connections; 0: none
  uint64_t warned_refused_ = 0;      // number of closed connections in that warning
  bool has_ended_sessions_ = false;  // sessions_ has sessions that were marked
};

}  // namespace atolldb
