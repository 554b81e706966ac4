#include "soc/network/gateway.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/hex.h"
#include "shared/base/try.h"
#include "shared/memory/epoch_stages.h"
#include "shared/process/start_up.h"
#include "soc/network/gateway_sockets.h"

namespace atolldb {
namespace {

/// Frames that a round receives before it turns to the answers.
constexpr int kFramesPerRound = 32;
/// Busy rounds between two checks of the sockets other than that of the clients.
constexpr int kBusyNetworkRounds = 64;
/// Pause before a retry while a worker's queue is full, or while a client has not taken the parts
/// of an output. The end of a task that is no session request makes room, but does not wake this
/// thread. ZeroMQ does not report what it has written.
constexpr int kRetryPauseMs = 1;
/// Bytes that a round receives before it turns to the answers.
constexpr size_t kBytesPerRound = 1u << 20;
/// Pause of a gateway that has connections and nothing else to do. ZeroMQ does not report what a
/// connection has received before a message is whole, so the gateway must check.
constexpr auto kGuardPauseMs = static_cast<int>(ConnectionGuard::kPause.count());
/// Time between two warnings about closed connections. Any client can cause them.
constexpr uint64_t kWarningPauseNs = 60'000'000'000;
/// A routing id that ZeroMQ has chosen: a zero byte and four more. Clients must not choose theirs,
/// because another client could then choose the same.
constexpr size_t kRoutingIdBytes = 5;

/// Returns ADDRESS:PORT of the other end, or an empty text.
std::string peer_address(int fd) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof(address);
  if (fd < 0 || getpeername(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return "";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    if (inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size()) == nullptr) return "";
    return std::string(text.data()) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  if (address.ss_family != AF_INET6) return "";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size()) == nullptr) return "";
  return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(v6.sin6_port));
}

/// Returns the name with "?" for each control character. Terminals must not run what a client
/// sends.
std::string without_control_characters(std::string_view name) {
  std::string text(name);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return text;
}

uint16_t port_of(const std::string& endpoint) {
  return static_cast<uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

/// Returns the key in the name of a connection: "17 KEY". Nothing without a key.
std::optional<CurveKey> key_of_connection(std::string_view connection) {
  const size_t space = connection.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  return curve_key_of_hex(connection.substr(space + 1));
}

void count(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace

NetworkGateway::NetworkGateway(NetworkSettings settings, RequestSink& sink, NetworkMetrics& metrics,
                               Logger logger)
    : settings_(std::move(settings)),
      sink_(sink),
      metrics_(metrics),
      logger_(std::move(logger)),
      controls_("node " + std::to_string(sink.services().node) + ": its network port"),
      administration_(settings_.endpoints, [this](NetworkCall& call) { take_finished(call); }) {}

Result<std::unique_ptr<NetworkGateway>> NetworkGateway::start(NetworkSettings settings,
                                                              RequestSink& sink,
                                                              NetworkMetrics& metrics,
                                                              Logger logger) {
  std::unique_ptr<NetworkGateway> gateway(
      new NetworkGateway(std::move(settings), sink, metrics, std::move(logger)));
  ATOLL_TRY(gateway->open());
  gateway->controls_.open();
  gateway->thread_ = std::thread([raw = gateway.get()] { raw->run(); });
  return gateway;
}

Result<void> NetworkGateway::open() {
  wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.is_open()) {
    return make_error(ExitCode::resources,
                      std::string("network: ") + std::strerror(errno) + ": raise `ulimit -n`");
  }
  try {
    sockets_ = std::make_unique<Sockets>();
    refusals_ = std::make_shared<UnsentBytes>();
  } catch (const zmq::error_t& error) {
    return make_error(ExitCode::resources,
                      std::string("network: ZeroMQ: ") + error.what() + ": raise `ulimit -n`");
  }
  if (settings_.key_file.empty()) {
    authorisation_ = Authorisation::without_keys();
    ATOLL_ASSIGN(endpoint_, sockets_->bind(settings_, nullptr));
    guard_ = std::make_unique<ConnectionGuard>(port_of(endpoint_));
    logger_->warn("network: {}: clients need no key, and may do everything", endpoint_);
    return {};
  }
  ATOLL_ASSIGN(const CurveKeyPair keys, read_key_file(settings_.key_file));
  // Watches first, so that no change after the read is lost.
  ATOLL_TRY(sockets_->watch(settings_.authorised_keys));
  ATOLL_ASSIGN(authorisation_, Authorisation::read(settings_.authorised_keys));
  public_key_ = to_hex(keys.public_key);
  ATOLL_ASSIGN(endpoint_, sockets_->bind(settings_, &keys));
  guard_ = std::make_unique<ConnectionGuard>(port_of(endpoint_));
  logger_->info("network: {} accepts {} keys", endpoint_, authorisation_.size());
  return {};
}

NetworkGateway::~NetworkGateway() { stop(); }

void NetworkGateway::stop() {
  administration_.stop();
  if (!thread_.joinable()) return;
  // Release pairs with the thread's acquire.
  ends_.store(true, std::memory_order_release);
  wake();
  thread_.join();
  sockets_.reset();  // waits until the last answers are sent
  guard_.reset();    // its duplicates keep the connections open until then
}

void NetworkGateway::wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void NetworkGateway::note_room() {
  // Relaxed: if the flag is seen too late, the thread retries after kRetryPauseMs.
  if (holds_any_.load(std::memory_order_relaxed) &&
      holds_any_.exchange(false, std::memory_order_relaxed)) {
    wake();
  }
}

void NetworkGateway::take_finished(NetworkCall& call) {
  bool wakes = false;
  {
    const std::lock_guard guard(mutex_);
    finished_.push_back(&call);
    wakes = std::exchange(sleeps_, false);
  }
  if (wakes) wake();
}

bool NetworkGateway::may_sleep() {
  holds_any_.store(!held_.empty(), std::memory_order_relaxed);
  const std::lock_guard guard(mutex_);
  sleeps_ = finished_.empty();
  return sleeps_;
}

void NetworkGateway::run() {
  name_thread("network");
  int busy = 0;
  // Acquire pairs with the release in stop.
  while (!ends_.load(std::memory_order_acquire)) {
    bool did_something = receive_frames();
    did_something |= submit_held();
    did_something |= send_answers();
    did_something |= send_parts();
    if (has_ended_sessions_ || !ending_.empty()) collect_ended();
    int timeout_ms = 0;
    if (did_something) {
      if (++busy % kBusyNetworkRounds != 0) continue;
    } else if (may_sleep()) {
      const bool retries = !held_.empty() || outputs_ != 0;
      timeout_ms = retries ? kRetryPauseMs : guard_->is_empty() ? -1 : kGuardPauseMs;
    }
    if (!guard_->is_empty()) guard_connections();
    const Sockets::Ready ready = sockets_->wait(wake_.get(), timeout_ms);
    if (ready.woken) {
      uint64_t drained = 0;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &drained, sizeof(drained));
      serve_control();
    }
    if (ready.zap) serve_zap();
    if (ready.monitor) serve_monitor();
    if (ready.key_file) serve_key_file();
  }
  end_all();
}

// -- Requests -------------------------------------------------------------------------------------

bool NetworkGateway::receive_frames() {
  size_t bytes = 0;
  for (int i = 0; i < kFramesPerRound && bytes < kBytesPerRound; ++i) {
    Received received;
    if (!sockets_->receive(received)) return i != 0;
    count(metrics_.frames_in);
    count(metrics_.bytes_in, received.frame.size());
    bytes += received.frame.size();
    take_frame(received);
  }
  return true;
}

void NetworkGateway::take_frame(const Received& received) {
  guard_->record_message(received.fd());
  if (!received.is_whole) return refuse_malformed(received, "a message has exactly one part");
  if (const auto read = read_wire_frame(received.bytes(), frame_); !read) {
    return refuse_malformed(received, read.error().message, read.error().code);
  }
  if (frame_.kind == WireFrame::Kind::hello) return open_session(received);
  const auto place = sessions_.find(std::string(received.peer()));
  const bool is_open = place != sessions_.end() && !place->second->has_ended &&
                       place->second->peer.connection == received.connection();
  if (!is_open) {
    return refuse_frame(received, RefusalCode::no_session,
                        "the frame needs a session: send a Hello first");
  }
  switch (frame_.kind) {
    case WireFrame::Kind::requests:
      return take_requests(*place->second);
    case WireFrame::Kind::part:
      return take_part(*place->second, received);
    case WireFrame::Kind::goodbye:
      return end(*place->second, "its client has closed it");
    default:
      return refuse_malformed(received, "only a node sends this frame");
  }
}

void NetworkGateway::refuse_frame(const Received& received, RefusalCode code,
                                  const std::string& why) {
  const auto frame = writer_.refusal(code, why);
  // A client that does not read this loses nothing else.
  if (sockets_->send(received.peer(), frame, refusals_) != Sockets::Sent::yes) return;
  count(metrics_.frames_out);
  count(metrics_.bytes_out, frame.size());
}

void NetworkGateway::refuse_malformed(const Received& received, const std::string& why,
                                      RefusalCode code) {
  count(metrics_.malformed);
  refuse_frame(received, code, why);
}

void NetworkGateway::open_session(const Received& received) {
  // A connection that has ended must not be found by its descriptor, which may be used again now.
  serve_monitor();
  collect_ended();
  const std::string id(received.peer());
  if (id.size() != kRoutingIdBytes || id[0] != '\0') {
    return refuse_malformed(received, "clients must not set a routing id");
  }
  if (sessions_.contains(id)) {
    return refuse_malformed(received, "the connection has a session already");
  }
  if (sessions_.size() + ending_.size() >= kMaxSessions) {
    probe_all();
    collect_ended();
  }
  if (sessions_.size() + ending_.size() >= kMaxSessions) {
    count(metrics_.refused_limit);
    return refuse_frame(received, RefusalCode::limit,
                        "node " + std::to_string(sink_.services().node) + " has " +
                            std::to_string(kMaxSessions) +
                            " network sessions already: end one, or use another node");
  }
  const auto client = authorisation_.find(key_of_connection(received.connection()));
  if (!client) {
    count(metrics_.refused_key);
    return refuse_frame(received, RefusalCode::revoked, "the key is no longer authorised");
  }
  NetworkPeer peer{.routing_id = id,
                   .connection = std::string(received.connection()),
                   .address = peer_address(received.fd()),
                   .program = without_control_characters(frame_.hello.client),
                   .key_name = client->name,
                   .rights = client->rights,
                   .fd = received.fd()};
  if (peer.address.empty()) return;  // the client has gone already
  const uint32_t number = sink_.next_session_number();
  auto session = std::make_unique<NetworkSession>(*this, number, std::move(peer),
                                                  std::make_shared<UnsentBytes>());
  count(metrics_.open);
  count(metrics_.opened);
  logger_->debug("network session {} of {} is open", number, session->peer.address);
  guard_->record_session(received.fd());
  session->takes_parts = frame_.hello.takes_parts;
  NetworkSession& opened = *sessions_.emplace(id, std::move(session)).first->second;
  const SessionServices& services = sink_.services();
  send(opened,
       writer_.welcome({number, services.node, services.incarnation, kMaxNetworkInFlight,
                        kMaxNetworkInFlightBytes, client->rights, opened.peer.key_name,
                        services.payloads.max_input_bytes, services.payloads.max_output_bytes}));
}

void NetworkGateway::take_requests(NetworkSession& session) {
  session.last_arrived_ns = monotonic_time_ns();
  count(metrics_.requests, frame_.requests.size());
  for (const WireRequest& request : frame_.requests) take_request(session, request);
}

std::optional<Refusal> NetworkGateway::missing_right(const NetworkSession& session,
                                                     const WireRequest& request) {
  constexpr uint32_t kUsual = kMayRead | kMayWrite | kMayCallProcedures;
  const uint32_t rights = session.peer.rights;
  // Most clients have all three usual rights, so their requests need no check.
  const bool may_do_all =
      rights == kAllNetworkRights ||
      ((rights & kUsual) == kUsual && !request.procedure.starts_with(kAdministrationPrefix));
  if (may_do_all) return std::nullopt;
  const uint32_t missing = missing_rights(request.procedure, request.input, rights);
  if (missing == 0) return std::nullopt;
  return Refusal{Status::permission_denied, "the key \"" + session.peer.key_name +
                                                "\" lacks the right " + rights_text(missing) +
                                                ": change network.authorised_keys"};
}

void NetworkGateway::take_request(NetworkSession& session, const WireRequest& request) {
  if (session.has_ended) return;
  const bool has_room = calls_ < kMaxCalls && call_bytes_ + request.input.size() <= kMaxCallBytes;
  NetworkCall* const taken = has_room ? session.take(request.input.size()) : nullptr;
  if (taken == nullptr) {
    return answer_now(session, request,
                      {Status::unavailable,
                       has_room ? "the session has too many requests in flight: wait for answers"
                                : "the node has too many requests in flight: try again later"});
  }
  NetworkCall& call = *taken;
  ++calls_;
  call_bytes_ += request.input.size();
  call.id = request.id;
  call.affinity = request.affinity;
  call.worker = request.worker;
  call.answer_at = request.answer_at;
  call.isolation = request.isolation;
  call.mode = {Isolation::serializable, request.snapshot};
  call.procedure.assign(request.procedure);
  call.input.assign(request.input.begin(), request.input.end());
  call.arrived_ns = session.last_arrived_ns;
  constexpr uint64_t kNsPerMs = 1'000'000;
  call.start_before_ns =
      request.start_within_ms == 0 ? 0 : call.arrived_ns + request.start_within_ms * kNsPerMs;
  call.max_output_bytes =
      session.takes_parts ? sink_.services().payloads.max_output_bytes : kSessionPartBytes;
  auto refusal = missing_right(session, request);
  if (refusal) count(metrics_.denied);
  if (request.input_bytes != 0 && !refusal) {
    refusal = begin_input(session, call, request.input_bytes);
    if (!refusal) return;
  }
  submit(session, call, std::move(refusal));
}

void NetworkGateway::submit(NetworkSession& session, NetworkCall& call,
                            std::optional<Refusal> refusal) {
  const bool is_control = NetworkAdministration::serves(call.procedure);
  if (!refusal) refusal = is_control ? administration_.submit(call) : sink_.admit(call);
  if (!refusal && is_control) return;
  if (refusal) {
    sink_.refuse(call, *std::move(refusal));
    return take_finished(call);
  }
  const bool others_wait = std::ranges::any_of(
      held_, [&](const NetworkCall* held) { return held->worker == call.worker; });
  if (others_wait) return held_.push_back(&call);  // they are older
  switch (sink_.submit(call, session)) {
    case RequestSink::Submitted::yes:
      return;
    case RequestSink::Submitted::full:
      held_.push_back(&call);
      return;
    case RequestSink::Submitted::no:
      return take_finished(call);
  }
}

void NetworkGateway::answer_now(NetworkSession& session, const WireRequest& request,
                                Refusal refusal) {
  count(sink_.services().metrics->unavailable);
  writer_.add(WireAnswer{.id = request.id,
                         .status = refusal.status,
                         .answered_at = request.answer_at,
                         .incarnation = sink_.services().incarnation,
                         .message = refusal.why});
  send(session, writer_.finish_answers(session.number));
}

bool NetworkGateway::submit_held() {
  if (held_.empty()) return false;
  const size_t before = held_.size();
  std::erase_if(held_, [this](NetworkCall* call) {
    if (call->session->has_ended) {
      sink_.refuse(*call, {Status::unavailable, "the session has ended"});
      take_finished(*call);
      return true;
    }
    const RequestSink::Submitted submitted = sink_.submit(*call, *call->session);
    if (submitted == RequestSink::Submitted::no) take_finished(*call);
    return submitted != RequestSink::Submitted::full;
  });
  return held_.size() != before;
}

// -- Answers --------------------------------------------------------------------------------------

bool NetworkGateway::send_answers() {
  taken_.clear();
  {
    const std::lock_guard guard(mutex_);
    taken_.swap(finished_);
  }
  for (NetworkCall* call : taken_) {
    NetworkSession& session = *call->session;
    if (session.done.empty()) pending_.push_back(&session);
    session.done.push_back(call);
  }
  for (NetworkSession* session : pending_) send_done(*session);
  pending_.clear();
  return !taken_.empty();
}

void NetworkGateway::send_done(NetworkSession& session) {
  const uint64_t incarnation = sink_.services().incarnation;
  for (NetworkCall* call : session.done) {
    if (!session.has_ended && call->outcome.output.size() > kSessionPartBytes) {
      free_long_input(*call);
      call->sent_bytes = 0;
      call->progress_ns = monotonic_time_ns();
      session.outputs.push_back(call);
      ++outputs_;
      continue;
    }
    if (!session.has_ended) {
      if (writer_.is_full()) send(session, writer_.finish_answers(session.number));
      writer_.add(answer_of(*call, incarnation));
      ++session.answered;
    }
    release(session, *call);
  }
  session.done.clear();
  if (!writer_.is_empty()) send(session, writer_.finish_answers(session.number));
}

void NetworkGateway::release(NetworkSession& session, NetworkCall& call) {
  CHECK(calls_ > 0 && call_bytes_ >= call.counted_bytes());
  --calls_;
  call_bytes_ -= call.counted_bytes();
  session.release(call);
}

void NetworkGateway::send(NetworkSession& session, std::span<const std::byte> frame) {
  if (session.has_ended) return;
  switch (sockets_->send(session.peer.routing_id, frame, session.unsent)) {
    case Sockets::Sent::yes:
      count(metrics_.frames_out);
      count(metrics_.bytes_out, frame.size());
      return;
    case Sockets::Sent::gone:
      return end(session, "its client has disconnected");
    case Sockets::Sent::full:
      count(metrics_.dropped);
      end(session, "its client does not read its answers");
      return guard_->shut_down(session.peer.fd);
  }
}

// -- Ends of sessions -----------------------------------------------------------------------------

void NetworkGateway::end(NetworkSession& session, const char* why) {
  if (std::exchange(session.has_ended, true)) return;
  has_ended_sessions_ = true;
  administration_.cancel(session);
  guard_->record_no_session(session.peer.fd, monotonic_time_ns());
  logger_->debug("network session {} of {} ends: {}", session.number, session.peer.address, why);
}

void NetworkGateway::refuse_session(NetworkSession& session, RefusalCode code,
                                    const std::string& why) {
  send(session, writer_.refusal(code, why));
  end(session, why.c_str());
}

void NetworkGateway::collect_ended() {
  if (std::exchange(has_ended_sessions_, false)) {
    for (auto place = sessions_.begin(); place != sessions_.end();) {
      if (!place->second->has_ended) {
        ++place;
        continue;
      }
      drop_transfers(*place->second);
      ending_.push_back(std::move(place->second));
      place = sessions_.erase(place);
    }
  }
  const size_t freed =
      std::erase_if(ending_, [](const auto& session) { return session->in_flight() == 0; });
  metrics_.open.fetch_sub(freed, std::memory_order_relaxed);
}

void NetworkGateway::end_all() {
  controls_.close();
  submit_held();
  for (NetworkCall* call : std::exchange(held_, {})) {
    sink_.refuse(*call, {Status::unavailable, "the node stops"});
    take_finished(*call);
  }
  send_answers();
  for (const auto& [id, session] : sessions_) {
    refuse_session(*session, RefusalCode::stopping, "the node stops: connect again later");
  }
  collect_ended();
  CHECK(sessions_.empty() && ending_.empty() && calls_ == 0);  // see `stop`
}

// -- Connections and keys -------------------------------------------------------------------------

void NetworkGateway::serve_zap() {
  Sockets::ZapRequest request;
  while (sockets_->next_zap(request)) {
    const bool is_authorised = authorisation_.find(request.key).has_value();
    if (!is_authorised) {
      count(metrics_.refused_key);
      logger_->debug("network: {}: its key {} is not authorised", request.address,
                     request.key ? to_hex(*request.key) : "(none)");
    }
    const std::string key = request.key ? to_hex(*request.key) : "-";
    sockets_->answer_zap(request, is_authorised, std::to_string(next_connection_++) + " " + key);
  }
}

void NetworkGateway::serve_monitor() {
  Sockets::Event event;
  while (sockets_->next_event(event)) {
    switch (event.kind) {
      case ZMQ_EVENT_ACCEPTED:
        guard_->record_accepted(static_cast<int>(event.value), monotonic_time_ns());
        break;
      case ZMQ_EVENT_DISCONNECTED:
        end_client_of(static_cast<int>(event.value));
        break;
      default:
        count(metrics_.failed_handshakes);
    }
  }
  publish_connections(monotonic_time_ns());
}

void NetworkGateway::guard_connections() {
  const uint64_t now = monotonic_time_ns();
  if (!guard_->is_due(now)) return;
  guard_->check(now);
  end_stalled(now);
  publish_connections(now);
}

void NetworkGateway::publish_connections(uint64_t now_ns) {
  metrics_.connections.store(guard_->size(), std::memory_order_relaxed);
  metrics_.unread_limit_bytes.store(guard_->size() * kMaxUnreadBytes, std::memory_order_relaxed);
  const uint64_t refused = guard_->refused();
  metrics_.connections_refused.store(refused, std::memory_order_relaxed);
  const bool is_early = warned_ns_ != 0 && now_ns - warned_ns_ < kWarningPauseNs;
  if (refused == warned_refused_ || is_early) return;
  warned_ns_ = now_ns;
  warned_refused_ = refused;
  const uint64_t no_descriptor = guard_->without_descriptor();
  const std::string advice = no_descriptor == 0
                                 ? ""
                                 : "; " + std::to_string(no_descriptor) +
                                       " of them for lack of a descriptor: raise `ulimit -n`";
  logger_->warn(
      "network: {} connections closed so far because of a limit: see "
      "atoll_network_connections_refused_total{}",
      refused, advice);
}

void NetworkGateway::probe_all() {
  const auto frame = writer_.probe();
  for (const auto& [id, session] : sessions_) send(*session, frame);
}

/// Ends the session of a connection that has ended.
void NetworkGateway::end_client_of(int fd) {
  for (const auto& [id, session] : sessions_) {
    if (session->peer.fd == fd) end(*session, "its client has disconnected");
  }
  guard_->record_ended(fd);
}

void NetworkGateway::serve_key_file() {
  if (!sockets_->has_file_changed()) return;
  auto changed = Authorisation::read(settings_.authorised_keys);
  if (!changed) {
    logger_->error("{}: the previous keys remain in use", changed.error().message);
    return;
  }
  authorisation_ = *std::move(changed);
  logger_->info("network: {} has changed: it has {} keys", settings_.authorised_keys,
                authorisation_.size());
  for (const auto& [id, session] : sessions_) {
    const auto client = authorisation_.find(key_of_connection(session->peer.connection));
    if (client) {
      session->peer.key_name = client->name;
      session->peer.rights = client->rights;
    } else {
      refuse_session(*session, RefusalCode::revoked, "the key is no longer authorised");
    }
  }
}

}  // namespace atolldb
