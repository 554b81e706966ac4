#include "shared/c_client/connection.h"

#include <algorithm>
#include <utility>

#include "shared/base/check.h"
#include "shared/client/network_client.h"
#include "shared/client/session_client.h"

namespace atolldb::c_client {
namespace {

Checked<std::shared_ptr<Session>> open_session(const ConnectionTarget& target,
                                               std::chrono::milliseconds patience) {
  auto client = connect_to(target, patience);
  if (!client) return std::unexpected(connect_failure(client.error()));
  return std::make_shared<Session>(*std::move(client));
}

/// Pause between two checks whether an abandoned request has left a slot.
constexpr std::chrono::milliseconds kRoomCheck{1};

std::unexpected<Failure> is_closed() {
  return fail(ATOLL_CLOSED, "the connection was closed: open another one");
}

}  // namespace

Session::Session(std::unique_ptr<ClientTransport> client) : client_(std::move(client)) {
  CHECK(client_ != nullptr);
  abandoned_.reserve(kSessionSlots);
}

Session::~Session() {
  // In a child process the client's threads do not exist, and its sockets belong to the parent. So
  // the client cannot end there.
  if (!is_own()) static_cast<void>(client_.release());
}

size_t Session::fetch_abandoned() {
  std::vector<SessionTicket> tickets;
  {
    const std::lock_guard guard(mutex_);
    if (abandoned_.empty()) return 0;
    tickets.swap(abandoned_);
  }
  // A poll may run callbacks, which may submit. So the mutex is not held.
  DCHECK(tickets.size() <= kSessionSlots);
  const size_t fetched = std::erase_if(
      tickets, [this](SessionTicket ticket) { return client_->poll(ticket).has_value(); });
  const std::lock_guard guard(mutex_);
  abandoned_.insert(abandoned_.end(), tickets.begin(), tickets.end());
  DCHECK(abandoned_.size() <= kSessionSlots);
  return fetched;
}

std::expected<SessionTicket, Status> Session::submit_now(std::string_view procedure,
                                                         std::span<const std::byte> input,
                                                         const SessionOptions& options,
                                                         ClientTransport::Callback callback) {
  DCHECK(!procedure.empty() && input.size() <= kMaxSessionInputBytes);
  if (!is_own()) return std::unexpected(Status::unavailable);
  SessionOptions at_once = options;
  at_once.waits_for_room = false;
  for (;;) {
    fetch_abandoned();
    {
      const std::lock_guard guard(mutex_);
      if (abandoned_.empty()) break;
    }
    const auto ticket = client_->submit(procedure, input, at_once, callback);
    const bool is_full = !ticket && ticket.error() == Status::unavailable && client_->is_open();
    if (!is_full || !options.waits_for_room) return ticket;
    // The reply of an abandoned request frees a slot only when it is fetched, so this does not wait
    // for the other requests.
    client_->dispatch(kRoomCheck);
  }
  return client_->submit(procedure, input, options, std::move(callback));
}

std::expected<SessionTicket, Status> Session::submit(std::string_view procedure,
                                                     std::span<const std::byte> input,
                                                     const SessionOptions& options) {
  return submit_now(procedure, input, options, {});
}

std::expected<void, Status> Session::submit(std::string_view procedure,
                                            std::span<const std::byte> input,
                                            const SessionOptions& options,
                                            const std::shared_ptr<Awaited>& awaited) {
  CHECK(awaited != nullptr);
  {
    const std::lock_guard guard(mutex_);
    if (has_ended_) return std::unexpected(Status::unavailable);
    DCHECK(awaited->place == Awaited::kTaken);
    awaited_.push_back(awaited);
    awaited->place = awaited_.size() - 1;
  }
  const auto ticket =
      submit_now(procedure, input, options, [this, awaited](SessionTicket, SessionReply reply) {
        if (take(awaited)) awaited->deliver(std::move(reply));
      });
  // If end_callbacks has taken it meanwhile, it was delivered as outcome_unknown.
  if (!ticket && take(awaited)) return std::unexpected(ticket.error());
  return {};
}

std::expected<void, Status> Session::send_only(std::string_view procedure,
                                               std::span<const std::byte> input,
                                               const SessionOptions& options) {
  const auto ticket =
      submit_now(procedure, input, options, [](SessionTicket, const SessionReply&) {});
  if (!ticket) return std::unexpected(ticket.error());
  return {};
}

void Session::abandon(SessionTicket ticket) {
  CHECK(ticket != 0);
  const std::lock_guard guard(mutex_);
  DCHECK(std::ranges::find(abandoned_, ticket) == abandoned_.end());
  abandoned_.push_back(ticket);
}

bool Session::take(const std::shared_ptr<Awaited>& awaited) {
  DCHECK(awaited != nullptr);
  const std::lock_guard guard(mutex_);
  const size_t place = awaited->place;
  if (place == Awaited::kTaken) return false;
  DCHECK(place < awaited_.size() && awaited_[place] == awaited);
  awaited_[place].swap(awaited_.back());
  awaited_[place]->place = place;
  awaited->place = Awaited::kTaken;
  awaited_.pop_back();
  return true;
}

void Session::end_callbacks() {
  if (!is_own()) return;  // they run in the parent
  // Delivers first what has arrived.
  client_->dispatch(std::chrono::nanoseconds(0));
  std::vector<std::shared_ptr<Awaited>> lost;
  {
    const std::lock_guard guard(mutex_);
    has_ended_ = true;
    lost.swap(awaited_);
    for (const auto& awaited : lost) awaited->place = Awaited::kTaken;
  }
  for (const auto& awaited : lost) {
    DCHECK(awaited != nullptr);
    SessionReply reply;
    DCHECK(reply.status == Status::outcome_unknown);
    reply.incarnation = client_->incarnation();
    reply.message = "the session was ended while the request was in flight";
    awaited->deliver(std::move(reply));
  }
}

Connection::Connection(ConnectionTarget target, std::shared_ptr<Session> session)
    : target_(std::move(target)),
      incarnation_(session->client().incarnation()),
      node_(session->client().node()),
      session_(std::move(session)) {
  CHECK(session_ != nullptr);
}

Checked<std::shared_ptr<Connection>> Connection::open(ConnectionTarget target) {
  CHECK(target.network.has_value() != target.run_dir.starts_with('/'));
  auto session = open_session(target, target.connect_timeout);
  if (!session) return std::unexpected(std::move(session).error());
  return std::shared_ptr<Connection>(new Connection(std::move(target), *std::move(session)));
}

Checked<std::shared_ptr<Session>> Connection::session() const {
  const std::lock_guard guard(mutex_);
  if (session_ == nullptr) return is_closed();
  if (!session_->is_own()) {
    return fail(ATOLL_CLOSED, "the connection belongs to the parent process: open another one");
  }
  return session_;
}

void Connection::close() {
  std::shared_ptr<Session> old;
  {
    const std::lock_guard guard(mutex_);
    old.swap(session_);
  }
  if (old != nullptr) old->end_callbacks();
}

Checked<bool> Connection::reconnect(std::chrono::milliseconds patience) {
  const uint64_t before = incarnation();
  const auto began = std::chrono::steady_clock::now();
  const auto ended = session();
  if (!ended) return std::unexpected(ended.error());
  if ((*ended)->client().is_open()) return false;
  // Callbacks run before the mutex is locked, because they may reconnect, too.
  (*ended)->end_callbacks();
  std::unique_lock one_at_a_time(reconnect_mutex_, patience);
  if (!one_at_a_time.owns_lock()) {
    return fail(ATOLL_UNAVAILABLE, "reconnect: another thread reconnects: try again later");
  }
  const auto old = session();
  if (!old) return std::unexpected(old.error());
  if ((*old)->client().is_open()) return incarnation() != before;  // another thread was faster
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  auto fresh = open_session(target_, std::max(patience - waited, std::chrono::milliseconds(0)));
  if (!fresh) return std::unexpected(std::move(fresh).error());
  const uint64_t incarnation = (*fresh)->client().incarnation();
  node_.store((*fresh)->client().node(), std::memory_order_relaxed);
  {
    const std::lock_guard guard(mutex_);
    if (session_ == nullptr) return is_closed();
    DCHECK(session_ == *old);  // only this function replaces it, and one thread at a time
    session_ = *std::move(fresh);
  }
  incarnation_.store(incarnation, std::memory_order_relaxed);
  return incarnation != before;
}

}  // namespace atolldb::c_client

using namespace atolldb;
using namespace atolldb::c_client;

atoll_status atoll_connect(const char* where, atoll_connection** connection) {
  return guarded([&]() -> atoll_status {
    if (connection == nullptr) return record_status(null_argument("connection").error());
    *connection = nullptr;
    if (where == nullptr) return record_status(null_argument("where").error());
    auto target = parse_connection_string(where);
    if (!target) return record_status(ATOLL_INVALID_ARGUMENT, target.error().message);
    auto opened = Connection::open(*std::move(target));
    ATOLL_C_TRY(opened);
    *connection = new AtollConnection{*std::move(opened)};
    return ATOLL_OK;
  });
}

void atoll_close(atoll_connection* connection) {
  if (connection == nullptr) return;
  DCHECK(connection->connection != nullptr);
  guarded([&] {
    connection->connection->close();
    return ATOLL_OK;
  });
}

void atoll_connection_free(atoll_connection* connection) {
  atoll_close(connection);
  delete connection;
}

int atoll_is_open(const atoll_connection* connection) {
  if (connection == nullptr) return 0;
  int is_open = 0;
  guarded([&] {
    const auto session = connection->connection->session();
    is_open = session && (*session)->client().is_open() ? 1 : 0;
    return ATOLL_OK;
  });
  return is_open;
}

atoll_status atoll_reconnect(atoll_connection* connection, int64_t timeout_ms,
                             int* has_new_incarnation) {
  return guarded([&]() -> atoll_status {
    if (has_new_incarnation != nullptr) *has_new_incarnation = 0;
    if (connection == nullptr) return record_status(null_argument("connection").error());
    DCHECK(connection->connection != nullptr);
    if (timeout_ms < 0 || timeout_ms > kMaxConnectTimeout.count()) {
      return record_status(ATOLL_INVALID_ARGUMENT, "timeout_ms: " + std::to_string(timeout_ms) +
                                                       " is not from 0 to " +
                                                       std::to_string(kMaxConnectTimeout.count()));
    }
    const auto has_changed =
        connection->connection->reconnect(std::chrono::milliseconds(timeout_ms));
    ATOLL_C_TRY(has_changed);
    if (has_new_incarnation != nullptr) *has_new_incarnation = *has_changed ? 1 : 0;
    return ATOLL_OK;
  });
}

uint64_t atoll_incarnation(const atoll_connection* connection) {
  return connection == nullptr ? 0 : connection->connection->incarnation();
}

uint32_t atoll_node(const atoll_connection* connection) {
  if (connection == nullptr) return 0;
  return connection->connection->node();
}
