#include "shared/client/network_client.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

using NetClock = std::chrono::steady_clock;

/// Frames that the thread reads before it sends again.
constexpr int kFramesPerTurn = 16;
/// Pause before the thread checks whether the connection has taken parts of a long input. ZeroMQ
/// does not report that. The pause doubles while a busy node takes none, up to the second number.
/// So a stalled upload costs little time, and goes on soon after the node.
constexpr int kUploadPauseMs = 1;
constexpr int kMostUploadPauseMs = 8;
/// Longest sleep of a waiting thread. It is only a bound that a clock can hold.
constexpr std::chrono::hours kLongestWait{1};

NetClock::time_point end_of(std::chrono::nanoseconds timeout) {
  const auto now = NetClock::now();
  return timeout >= NetClock::time_point::max() - now ? NetClock::time_point::max() : now + timeout;
}

WireRequest wire_request(SessionTicket id, const std::string& procedure,
                         const std::vector<std::byte>& input, const SessionOptions& options) {
  WireRequest request;
  request.id = id;
  request.procedure = procedure;
  if (input.size() > kSessionPartBytes) {
    request.input_bytes = static_cast<uint32_t>(input.size());
  } else {
    request.input = input;
  }
  request.affinity = options.affinity;
  request.worker = options.worker;
  request.answer_at = options.answer_at;
  request.isolation =
      options.isolation ? static_cast<uint8_t>(static_cast<uint8_t>(*options.isolation) + 1) : 0;
  request.snapshot = options.snapshot;
  request.start_within_ms = options.start_within_ms;
  return request;
}

}  // namespace

Result<std::unique_ptr<NetworkClient>> NetworkClient::connect(const NetworkAddress& address,
                                                              std::chrono::milliseconds timeout) {
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) {
    return make_error(ExitCode::resources, std::string("network session: eventfd: ") +
                                               std::strerror(errno) + ": raise `ulimit -n`");
  }
  ATOLL_ASSIGN(auto link, NetworkLink::open(address, timeout));
  return std::unique_ptr<NetworkClient>(new NetworkClient(std::move(link), std::move(wake)));
}

NetworkClient::NetworkClient(std::unique_ptr<NetworkLink> link, UniqueFd wake)
    : link_(std::move(link)), session_(link_->session()), wake_(std::move(wake)) {
  // A node of a later version may allow more than this client has slots.
  const uint32_t slots = std::clamp<uint32_t>(session_.max_in_flight, 1, kMaxNetworkInFlight);
  for (uint32_t slot = slots; slot != 0; --slot) free_.push_back(slot - 1);
  CHECK(session_.incarnation != 0);  // see NetworkLink::open
  thread_ = std::thread([this] { run(); });
}

NetworkClient::~NetworkClient() {
  {
    const std::lock_guard guard(mutex_);
    stops_ = true;
  }
  wake();
  thread_.join();
}

void NetworkClient::wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

bool NetworkClient::is_open() {
  const std::lock_guard guard(mutex_);
  return !has_ended_;
}

uint32_t NetworkClient::in_flight() const {
  const std::lock_guard guard(mutex_);
  return in_flight_;
}

SessionTicket NetworkClient::fill(std::string_view procedure, std::span<const std::byte> input,
                                  const SessionOptions& options, Callback callback) {
  CHECK(!free_.empty());
  const uint32_t index = free_.back();
  Slot& slot = slots_[index];
  DCHECK(slot.place == Place::free && slot.ticket == 0);
  slot.input.assign(input.begin(), input.end());
  slot.procedure.assign(procedure);
  queued_.push_back(index);
  // Nothing below can fail.
  free_.pop_back();
  slot.place = Place::queued;
  slot.ticket = next_++ * kMaxNetworkInFlight + index;
  slot.options = options;
  slot.has_callback = callback != nullptr;
  slot.callback = std::move(callback);
  ++in_flight_;
  in_flight_bytes_ += slot.counted_bytes();
  return slot.ticket;
}

std::expected<SessionTicket, Status> NetworkClient::submit_checked(std::string_view procedure,
                                                                   std::span<const std::byte> input,
                                                                   const SessionOptions& options,
                                                                   Callback callback) {
  const size_t counted = input.size() > kSessionPartBytes ? 0 : input.size();
  Lock lock(mutex_);
  for (;;) {
    if (has_ended_) break;
    const bool fits = counted <= session_.max_in_flight_bytes &&
                      in_flight_bytes_ <= session_.max_in_flight_bytes - counted;
    if (!free_.empty() && fits) {
      const SessionTicket ticket = fill(procedure, input, options, std::move(callback));
      if (std::exchange(sleeps_, false)) wake();
      run_ready(lock);
      return ticket;
    }
    if (run_ready(lock) != 0) continue;
    // Waits only if a request is in flight: a reply that waits for its fetch does not free its
    // slot.
    if (!options.waits_for_room || in_flight_ == 0) break;
    wait_for_change(lock, NetClock::time_point::max());
  }
  run_ready(lock);
  return std::unexpected(Status::unavailable);
}

size_t NetworkClient::run_ready(Lock& lock) {
  DCHECK(lock.owns_lock());
  if (ready_.empty()) return 0;
  std::vector<Ready> ready;
  ready.swap(ready_);
  lock.unlock();
  for (Ready& one : ready) one.callback(one.ticket, std::move(one.reply));
  lock.lock();
  return ready.size();
}

void NetworkClient::wait_for_change(Lock& lock, NetClock::time_point until) {
  ++waiting_threads_;
  changed_.wait_until(lock, std::min(until, NetClock::now() + kLongestWait));
  --waiting_threads_;
}

SessionReply NetworkClient::fetch(Slot& slot) {
  DCHECK(slot.place == Place::arrived);
  SessionReply reply = std::move(slot.reply);
  slot.reply = {};
  slot.place = Place::free;
  slot.ticket = 0;
  free_.push_back(static_cast<uint32_t>(&slot - slots_.data()));
  return reply;
}

std::optional<SessionReply> NetworkClient::wait_for(SessionTicket ticket,
                                                    std::chrono::nanoseconds timeout) {
  const NetClock::time_point until = end_of(timeout);
  Lock lock(mutex_);
  for (;;) {
    Slot& slot = slots_[ticket % kMaxNetworkInFlight];
    if (slot.ticket != ticket || slot.has_callback) {
      SessionReply wrong;
      wrong.status = Status::invalid_argument;
      wrong.message =
          "ticket " + std::to_string(ticket) + ": not in flight, or its reply goes to a callback";
      return wrong;
    }
    if (slot.place == Place::arrived) {
      SessionReply reply = fetch(slot);
      run_ready(lock);
      return reply;
    }
    if (run_ready(lock) != 0) continue;
    if (NetClock::now() >= until) return std::nullopt;
    wait_for_change(lock, until);
  }
}

size_t NetworkClient::dispatch(std::chrono::nanoseconds timeout) {
  const NetClock::time_point until = end_of(timeout);
  Lock lock(mutex_);
  for (;;) {
    if (const size_t count = run_ready(lock); count != 0) return count;
    if (in_flight_ == 0 || NetClock::now() >= until) return 0;
    wait_for_change(lock, until);
  }
}

void NetworkClient::run() {
  int pause_ms = kUploadPauseMs;
  for (;;) {
    bool did_something = receive_answers();
    did_something |= send_queued();
    if (send_parts()) {
      did_something = true;
      pause_ms = kUploadPauseMs;
    }
    {
      const std::lock_guard guard(mutex_);
      if (stops_) break;
    }
    if (!why_ended_.empty()) return lose_all(why_ended_);
    if (did_something || !may_sleep()) continue;
    link_->wait(wake_.get(), uploads_.empty() ? -1 : pause_ms);
    pause_ms = std::min(2 * pause_ms, kMostUploadPauseMs);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof(count));
    if (link_->has_ended()) {
      while (receive_answers()) {
      }
      if (why_ended_.empty()) why_ended_ = "the connection to the node has ended";
    }
  }
  link_->send(writer_.goodbye());
  lose_all("the client has closed the session");
}

bool NetworkClient::may_sleep() {
  const std::lock_guard guard(mutex_);
  sleeps_ = queued_.empty() && !stops_;
  return sleeps_;
}

bool NetworkClient::send_queued() {
  std::vector<uint32_t> slots;
  {
    const std::lock_guard guard(mutex_);
    if (queued_.empty()) return false;
    slots.swap(queued_);
    for (const uint32_t slot : slots) slots_[slot].place = Place::sent;
  }
  // Only this thread changes a slot that was sent, so the requests are read without the mutex.
  for (const uint32_t index : slots) {
    const Slot& slot = slots_[index];
    if (slot.input.size() > kSessionPartBytes) {
      uploads_.push_back({slot.ticket});
      continue;
    }
    if (writer_.is_full()) link_->send(writer_.finish_requests());
    writer_.add(wire_request(slot.ticket, slot.procedure, slot.input, slot.options));
  }
  if (!writer_.is_empty()) link_->send(writer_.finish_requests());
  return true;
}

bool NetworkClient::send_parts() {
  if (uploads_.empty() || !link_->has_room_for_part()) return false;
  DCHECK(writer_.is_empty());
  Upload& upload = uploads_.front();
  const Slot& slot = slots_[upload.ticket % kMaxNetworkInFlight];
  {
    const std::lock_guard guard(mutex_);
    // The node has refused the request before all parts were sent.
    if (slot.ticket != upload.ticket || slot.place != Place::sent) {
      uploads_.pop_front();
      return true;
    }
  }
  // Only this thread ends a request that was sent, so the slot is read without the mutex.
  DCHECK(slot.input.size() > kSessionPartBytes && upload.sent_bytes < slot.input.size());
  if (upload.sent_bytes == 0) {
    writer_.add(wire_request(slot.ticket, slot.procedure, slot.input, slot.options));
    link_->send(writer_.finish_requests());
  }
  const std::span<const std::byte> input = slot.input;
  while (upload.sent_bytes < input.size() && link_->has_room_for_part()) {
    const size_t bytes = std::min<size_t>(input.size() - upload.sent_bytes, kMaxWirePartBytes);
    link_->send_part(writer_.part({slot.ticket, static_cast<uint32_t>(input.size()),
                                   input.subspan(upload.sent_bytes, bytes)}));
    upload.sent_bytes += bytes;
  }
  if (upload.sent_bytes == input.size()) uploads_.pop_front();
  return true;
}

bool NetworkClient::receive_answers() {
  for (int i = 0; i < kFramesPerTurn; ++i) {
    const auto bytes = link_->receive();
    if (!bytes) return i != 0;
    if (const auto read = read_wire_frame(*bytes, received_); !read) {
      why_ended_ = "the node sent a wrong frame: " + read.error().message;
      return false;
    }
    if (received_.kind == WireFrame::Kind::refusal) {
      why_ended_ = std::string(received_.refusal.message);
      if (why_ended_.empty()) why_ended_ = "the node has ended the session";
      return false;
    }
    if (received_.kind == WireFrame::Kind::part) {
      const std::lock_guard guard(mutex_);
      take_part(received_.part);
      continue;
    }
    if (received_.kind != WireFrame::Kind::answers || received_.session != session_.number) {
      continue;
    }
    const std::lock_guard guard(mutex_);
    for (const WireAnswer& answer : received_.answers) take_answer(answer);
    if (waiting_threads_ != 0) changed_.notify_all();
  }
  return true;
}

void NetworkClient::take_part(const WirePart& part) {
  Slot& slot = slots_[part.id % kMaxNetworkInFlight];
  // Invalid data from a faulty node must not crash its client.
  if (slot.place != Place::sent || slot.ticket != part.id) return;
  if (part.bytes.size() + slot.output.size() > session_.max_output_bytes) return;
  if (slot.output.empty())
    slot.output.reserve(std::min(part.total_bytes, session_.max_output_bytes));
  slot.output.insert(slot.output.end(), part.bytes.begin(), part.bytes.end());
}

void NetworkClient::take_answer(const WireAnswer& answer) {
  Slot& slot = slots_[answer.id % kMaxNetworkInFlight];
  // Invalid data from a faulty node must not crash its client.
  if (slot.place != Place::sent || slot.ticket != answer.id) return;
  SessionReply reply;
  reply.status = answer.status;
  reply.answered_at = answer.answered_at;
  reply.commit_epoch = answer.commit_epoch;
  reply.commit_version = answer.commit_version;
  reply.incarnation = answer.incarnation;
  reply.output.assign(answer.output.begin(), answer.output.end());
  reply.message.assign(answer.message);
  if (answer.output_bytes != 0 && slot.output.size() == answer.output_bytes) {
    reply.output = std::move(slot.output);
  } else if (answer.output_bytes != 0) {
    reply.status = Status::outcome_unknown;
    reply.message = "the node sent " + std::to_string(slot.output.size()) + " of " +
                    std::to_string(answer.output_bytes) + " bytes of the output";
  }
  arrive(slot, std::move(reply));
}

void NetworkClient::arrive(Slot& slot, SessionReply reply) {
  DCHECK(slot.place == Place::sent || slot.place == Place::queued);
  CHECK(in_flight_ > 0 && in_flight_bytes_ >= slot.counted_bytes());
  --in_flight_;
  in_flight_bytes_ -= slot.counted_bytes();
  // An assignment of {} would keep the memory.
  slot.output = std::vector<std::byte>();
  if (slot.input.size() > kSessionPartBytes) slot.input = std::vector<std::byte>();
  slot.place = Place::arrived;
  slot.reply = std::move(reply);
  if (!slot.has_callback) return;
  Callback callback = std::exchange(slot.callback, {});
  slot.has_callback = false;
  const SessionTicket ticket = slot.ticket;
  ready_.push_back({std::move(callback), ticket, fetch(slot)});
}

void NetworkClient::lose_all(const std::string& why) {
  const std::lock_guard guard(mutex_);
  has_ended_ = true;
  queued_.clear();
  for (Slot& slot : slots_) {
    if (slot.place != Place::queued && slot.place != Place::sent) continue;
    SessionReply lost;
    // A request that was not sent had no effect.
    lost.status = slot.place == Place::queued ? Status::unavailable : Status::outcome_unknown;
    lost.incarnation = session_.incarnation;
    lost.message = why;
    arrive(slot, std::move(lost));
  }
  CHECK(in_flight_ == 0);
  changed_.notify_all();
}

}  // namespace atolldb
