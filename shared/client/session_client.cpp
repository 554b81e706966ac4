#include "shared/client/session_client.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"
#include "shared/base/fork_count.h"
#include "shared/base/try.h"
#include "shared/config/default_run_dir.h"
#include "shared/process/run_paths.h"
#include "shared/session/session_socket.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

using Clock = std::chrono::steady_clock;

/// Number of checks of the answer ring before the thread sleeps.
constexpr int kRingChecks = 150;
/// Number of checks of the answer ring before a thread wakes the node for a request that it has
/// submitted with waits_at_once. A worker that helps has taken the request by then.
constexpr int kChecksBeforeWake = 50;
static_assert(kChecksBeforeWake < kRingChecks);
/// Number of expired waits (for example `poll`) per check whether the node is dead. The check is a
/// system call.
constexpr uint32_t kWaitsPerNodeCheck = 64;

/// Returns the slot of a ticket.
constexpr uint32_t slot_of(SessionTicket ticket) { return ticket % kSessionSlots; }

Clock::time_point deadline_of(std::chrono::nanoseconds timeout) {
  const auto now = Clock::now();
  return timeout >= Clock::time_point::max() - now ? Clock::time_point::max() : now + timeout;
}

}  // namespace

Result<std::unique_ptr<SessionClient>> SessionClient::connect(const std::string& run_dir,
                                                              uint32_t node) {
  ATOLL_ASSIGN(UniqueFd socket, connect_to_sessions(session_socket_path(run_dir, node)));
  return over(std::move(socket));
}

Result<std::unique_ptr<SessionClient>> SessionClient::connect_within(
    const std::string& run_dir, uint32_t node, std::chrono::milliseconds patience,
    const std::function<bool()>& gives_up, Isolation isolation) {
  auto transport = connect_until_running(
      [&]() -> Result<std::unique_ptr<ClientTransport>> { return connect(run_dir, node); },
      patience, gives_up, isolation, "session: node " + std::to_string(node));
  if (!transport) return std::unexpected(std::move(transport).error());
  return std::unique_ptr<SessionClient>(static_cast<SessionClient*>(transport->release()));
}

Result<std::unique_ptr<SessionClient>> SessionClient::connect_by_name(const std::string& cluster,
                                                                      uint32_t node) {
  return connect(default_run_dir(cluster), node);
}

Result<std::unique_ptr<SessionClient>> SessionClient::over(UniqueFd socket) {
  CHECK(socket.is_open());
  ATOLL_ASSIGN(SessionDescriptors descriptors,
               receive_welcome(socket.get(), static_cast<int>(kConnectTimeout.count())));
  struct stat info{};
  if (fstat(descriptors.segment.get(), &info) != 0 ||
      static_cast<uint64_t>(info.st_size) != kSessionSegmentBytes) {
    return make_error(ExitCode::failed, "session: its segment has " + std::to_string(info.st_size) +
                                            " bytes, this program expects " +
                                            std::to_string(kSessionSegmentBytes) +
                                            ": use programs of one build");
  }
  Result<MappedSegment> memory =
      MappedSegment::map(descriptors.segment.get(), kSessionSegmentBytes, true);
  if (!memory) {
    return make_error(ExitCode::resources, "session: cannot map its segment: " +
                                               memory.error().message + ": check `ulimit -v`");
  }
  std::unique_ptr<SessionClient> client(
      new SessionClient(std::move(socket), std::move(descriptors.wake), *std::move(memory)));
  const SessionSegment& segment = *client->segment_;
  if (segment.header.magic != kSegmentMagic || segment.header.kind != SegmentKind::session ||
      segment.session_layout_version != kSessionLayoutVersion) {
    return make_error(ExitCode::failed,
                      "session: the node sent no session segment of layout version " +
                          std::to_string(kSessionLayoutVersion) + ": use programs of one build");
  }
  return client;
}

SessionClient::SessionClient(UniqueFd socket, UniqueFd wake, MappedSegment memory)
    : socket_(std::move(socket)),
      wake_(std::move(wake)),
      memory_(std::move(memory)),
      segment_(reinterpret_cast<SessionSegment*>(memory_.base())),
      incarnation_(segment_->incarnation),
      max_input_bytes_(std::min(segment_->max_input_bytes, kMaxSessionInputBytes)),
      max_output_bytes_(std::min(segment_->max_output_bytes, kMaxSessionOutputBytes)),
      forks_(fork_count()) {
  CHECK(wake_.is_open());
  CHECK(reinterpret_cast<uintptr_t>(segment_) % alignof(SessionSegment) == 0);
  for (uint32_t slot = kSessionSlots; slot != 0; --slot) free_.push_back(slot - 1);
}

SessionClient::~SessionClient() {
  // A child process may have a copy of the socket, which would keep the session open.
  if (is_own()) shutdown(socket_.get(), SHUT_RDWR);
}

bool SessionClient::is_own() const { return fork_count() == forks_; }

bool SessionClient::is_closed() const {
  if (!is_own()) return true;
  // Acquire pairs with the node's release: all answers that will ever come are in the ring.
  return segment_->state.load(std::memory_order_acquire) !=
         static_cast<uint32_t>(SessionState::open);
}

bool SessionClient::has_ended() const { return is_closed() || peer_is_gone(socket_.get()); }

bool SessionClient::is_open() { return !ended_.load(std::memory_order_relaxed) && !has_ended(); }

uint32_t SessionClient::in_flight() const {
  const std::lock_guard guard(mutex_);
  return in_flight_;
}

void SessionClient::wake_node() {
  // The fence orders the put before the load of node_sleeps. The node announces its sleep before it
  // checks the ring, so it finds the request or this thread finds the announcement.
  full_fence();
  if (segment_->node_sleeps.load(std::memory_order_relaxed) == 0) return;
  if (segment_->node_sleeps.exchange(0, std::memory_order_seq_cst) == 0) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void SessionClient::fill(uint32_t slot, std::string_view procedure,
                         std::span<const std::byte> input, const SessionOptions& options) {
  DCHECK(slot < kSessionSlots);
  DCHECK(pending_[slot].place == Place::in_flight && slot_of(pending_[slot].ticket) == slot);
  DCHECK(procedure.size() <= kMaxSessionProcedureName && input.size() <= max_input_bytes_);
  SessionSlot& shared = segment_->slots[slot];
  SessionRequest& request = shared.request;
  request.id = pending_[slot].ticket;
  request.affinity = options.affinity;
  request.worker = options.worker;
  request.answer_at = options.answer_at;
  request.input_bytes = static_cast<uint32_t>(input.size());
  request.name_bytes = static_cast<uint32_t>(procedure.size());
  request.snapshot = options.snapshot;
  request.isolation =
      options.isolation ? static_cast<uint8_t>(static_cast<uint8_t>(*options.isolation) + 1) : 0;
  request.spare = {};
  copy_bytes(request.name.data(), procedure.data(), procedure.size());
  copy_bytes(shared.data.data(), input.data(), std::min<size_t>(input.size(), kSessionPartBytes));
}

uint32_t SessionClient::take_free_slot() {
  DCHECK(!free_.empty());
  const uint32_t slot = free_.back();
  free_.pop_back();
  DCHECK(slot < kSessionSlots);
  DCHECK(pending_[slot].place == Place::free && pending_[slot].ticket == 0);
  return slot;
}

SessionTicket SessionClient::place(std::string_view procedure, std::span<const std::byte> input,
                                   const SessionOptions& options, Callback callback) {
  DCHECK(in_flight_ < kSessionSlots && free_.size() >= session_parts(input.size()));
  const uint32_t slot = take_free_slot();
  Pending& pending = pending_[slot];
  const SessionTicket ticket = next_++ * kSessionSlots + slot;
  pending.place = Place::in_flight;
  pending.is_lost = false;
  pending.ticket = ticket;
  pending.callback = std::move(callback);
  ++in_flight_;
  fill(slot, procedure, input, options);
  if (input.size() <= kSessionPartBytes) {
    segment_->requests.put(requests_tail_++, slot);
    return ticket;
  }
  std::vector<uint32_t> slots{slot};
  for (size_t at = kSessionPartBytes; at < input.size(); at += kSessionPartBytes) {
    const uint32_t other = take_free_slot();
    pending_[other].place = Place::part;
    copy_bytes(segment_->slots[other].data.data(), input.data() + at,
               std::min<size_t>(input.size() - at, kSessionPartBytes));
    slots.push_back(other);
  }
  DCHECK(slots.size() == session_parts(input.size()));
  segment_->requests.put_all(requests_tail_, slots);
  requests_tail_ += static_cast<uint32_t>(slots.size());
  pending.longer = std::make_unique<LongPayload>();
  pending.longer->parts.assign(slots.begin() + 1, slots.end());
  return ticket;
}

std::expected<SessionTicket, Status> SessionClient::submit_checked(std::string_view procedure,
                                                                   std::span<const std::byte> input,
                                                                   const SessionOptions& options,
                                                                   Callback callback) {
  // Before the mutex, which another thread of the parent may have held during the fork.
  if (!is_own()) return std::unexpected(Status::unavailable);
  const size_t needed = session_parts(input.size());
  for (;;) {
    std::vector<Ready> ready;
    // Acquire pairs with the node's increment after each put. The load precedes the check of the
    // ring, so `sleep` notices an answer that arrives after that check.
    const uint32_t seen = segment_->answer_signal.load(std::memory_order_acquire);
    bool can_wait = false;
    SessionTicket ticket = 0;
    {
      const std::lock_guard guard(mutex_);
      if (free_.size() < needed) collect(ready);
      if (ended_.load(std::memory_order_relaxed) || is_closed()) {
        can_wait = false;
      } else if (free_.size() >= needed) {
        ticket = place(procedure, input, options, std::exchange(callback, {}));
      } else {
        // Waits only if a request is in flight: a reply that waits for its fetch does not free its
        // slots.
        can_wait = options.waits_for_room && in_flight_ != 0;
      }
    }
    if (ticket != 0 && !options.waits_at_once) wake_node();
    run(ready);
    if (ticket != 0) return ticket;
    if (!can_wait) return std::unexpected(Status::unavailable);
    sleep(seen, Clock::time_point::max(), ready);
    run(ready);
  }
}

void SessionClient::collect(std::vector<Ready>& ready) {
  bool has_asked = false;
  // Acquire pairs with the node's release: entries and answers are visible.
  const uint32_t tail = segment_->answers.tail.load(std::memory_order_acquire);
  while (answers_head_ != tail) {
    const uint32_t slot =
        segment_->answers.entries[answers_head_ % kSessionSlots].load(std::memory_order_relaxed);
    ++answers_head_;
    // Invalid data from a faulty node must not crash its client.
    if (slot >= kSessionSlots || pending_[slot].place != Place::in_flight) continue;
    if (take_part(slot)) {
      has_asked = true;
    } else {
      arrive(slot, ready);
    }
  }
  if (has_asked) wake_node();
}

bool SessionClient::take_part(uint32_t slot) {
  Pending& pending = pending_[slot];
  DCHECK(pending.place == Place::in_flight);
  const SessionSlot& shared = segment_->slots[slot];
  const size_t whole = std::min(shared.answer.output_bytes, max_output_bytes_);
  if (shared.answer.id != pending.ticket || whole <= kSessionPartBytes) return false;
  if (pending.longer == nullptr) pending.longer = std::make_unique<LongPayload>();
  std::vector<std::byte>& output = pending.longer->output;
  if (whole <= output.size()) return false;  // invalid data from a faulty node
  if (output.empty()) output.reserve(whole);
  const size_t bytes = std::min<size_t>(kSessionPartBytes, whole - output.size());
  output.insert(output.end(), shared.data.begin(),
                shared.data.begin() + static_cast<std::ptrdiff_t>(bytes));
  if (output.size() == whole) return false;
  segment_->requests.put(requests_tail_++, slot);
  return true;
}

void SessionClient::arrive(uint32_t slot, std::vector<Ready>& ready) {
  Pending& pending = pending_[slot];
  DCHECK(pending.place == Place::in_flight);
  pending.place = Place::arrived;
  CHECK(in_flight_ > 0);
  --in_flight_;
  if (pending.longer != nullptr) {
    for (const uint32_t part : pending.longer->parts) {
      DCHECK(pending_[part].place == Place::part);
      pending_[part].place = Place::free;
      free_.push_back(part);
    }
    pending.longer->parts.clear();
  }
  if (!pending.callback) return;
  Callback callback = std::exchange(pending.callback, {});
  const SessionTicket ticket = pending.ticket;
  ready.push_back({std::move(callback), ticket, fetch(slot)});
}

void SessionClient::lose_all(std::vector<Ready>& ready) {
  collect(ready);
  ended_.store(true, std::memory_order_relaxed);
  for (uint32_t slot = 0; slot < kSessionSlots; ++slot) {
    if (pending_[slot].place != Place::in_flight) continue;
    pending_[slot].is_lost = true;
    arrive(slot, ready);
  }
  CHECK(in_flight_ == 0);
}

SessionReply SessionClient::fetch(uint32_t slot) {
  DCHECK(slot < kSessionSlots);
  DCHECK(pending_[slot].place == Place::arrived && !pending_[slot].callback);
  Pending& pending = pending_[slot];
  const SessionSlot& shared = segment_->slots[slot];
  SessionReply reply;
  reply.incarnation = incarnation_;
  if (pending.is_lost || shared.answer.id != pending.ticket) {
    reply.message = "the session has ended while the request was in flight";
  } else {
    const SessionAnswer& answer = shared.answer;
    reply.status = answer.status < Status::count_ ? answer.status : Status::outcome_unknown;
    reply.answered_at = answer.answered_at;
    reply.commit_epoch = answer.commit_epoch;
    reply.commit_version = answer.commit_version;
    reply.incarnation = answer.incarnation;
    if (pending.longer == nullptr || pending.longer->output.empty()) {
      const uint32_t output = std::min(answer.output_bytes, kSessionPartBytes);
      reply.output.assign(shared.data.begin(), shared.data.begin() + output);
    } else {
      reply.output = std::move(pending.longer->output);
    }
    reply.message.assign(answer.message.data(),
                         std::min(answer.message_bytes, kMaxSessionMessageBytes));
  }
  pending.longer.reset();
  pending.place = Place::free;
  pending.ticket = 0;
  free_.push_back(slot);
  DCHECK(free_.size() + in_flight_ <= kSessionSlots);
  return reply;
}

size_t SessionClient::run(std::vector<Ready>& ready) {
  for (Ready& one : ready) {
    DCHECK(one.callback != nullptr && one.ticket != 0);
    one.callback(one.ticket, std::move(one.reply));
  }
  const size_t count = ready.size();
  ready.clear();
  return count;
}

std::optional<SessionReply> SessionClient::try_fetch(SessionTicket ticket,
                                                     std::vector<Ready>& ready) {
  const std::lock_guard guard(mutex_);
  collect(ready);
  Pending& pending = pending_[slot_of(ticket)];
  if (pending.ticket != ticket || pending.callback) {
    SessionReply wrong;
    wrong.status = Status::invalid_argument;
    wrong.message =
        "ticket " + std::to_string(ticket) + ": not in flight, or its reply goes to a callback";
    return wrong;
  }
  if (pending.place != Place::arrived) return std::nullopt;
  return fetch(slot_of(ticket));
}

std::optional<SessionReply> SessionClient::wait_for(SessionTicket ticket,
                                                    std::chrono::nanoseconds timeout) {
  const Clock::time_point until = deadline_of(timeout);
  for (int checks = 0;; ++checks) {
    // Acquire pairs with the node's increment after each put. The load precedes the check of the
    // ring, so `sleep` notices an answer that arrives after that check.
    const uint32_t seen = segment_->answer_signal.load(std::memory_order_acquire);
    std::vector<Ready> ready;
    std::optional<SessionReply> reply = try_fetch(ticket, ready);
    run(ready);
    if (reply) return reply;
    const bool is_late = Clock::now() >= until;
    if (checks == kChecksBeforeWake || is_late) wake_node();
    if (is_late) {
      // After the end of the session every request has a reply, which may be outcome_unknown.
      if (!notice_end(ready)) return std::nullopt;
      run(ready);
    } else if (checks < kRingChecks) {
      spin_pause();
    } else {
      sleep(seen, until, ready);
      run(ready);
    }
  }
}

size_t SessionClient::dispatch(std::chrono::nanoseconds timeout) {
  const Clock::time_point until = deadline_of(timeout);
  for (int checks = 0;; ++checks) {
    const uint32_t seen = segment_->answer_signal.load(std::memory_order_acquire);
    std::vector<Ready> ready;
    bool is_idle = false;
    {
      const std::lock_guard guard(mutex_);
      collect(ready);
      is_idle = in_flight_ == 0;
    }
    if (const size_t count = run(ready); count != 0) return count;
    if (is_idle) return 0;
    if (Clock::now() >= until) {
      notice_end(ready);
      return run(ready);
    }
    if (checks < kRingChecks) {
      spin_pause();
    } else {
      sleep(seen, until, ready);
      if (const size_t count = run(ready); count != 0) return count;
    }
  }
}

bool SessionClient::notice_end(std::vector<Ready>& ready) {
  if (ended_.load(std::memory_order_relaxed)) return true;
  // A node that has died does not change the state. Only the socket shows that it has ended.
  const bool checks_node = waits_.fetch_add(1, std::memory_order_relaxed) % kWaitsPerNodeCheck == 0;
  if (!is_closed() && !(checks_node && peer_is_gone(socket_.get()))) return false;
  const std::lock_guard guard(mutex_);
  lose_all(ready);
  return true;
}

void SessionClient::sleep(uint32_t seen, Clock::time_point until, std::vector<Ready>& ready) {
  // seq_cst (R24) pairs with the node: it changes the signal, and then loads the number of
  // sleepers. So either the node sees this sleeper, or the load below sees the changed signal.
  segment_->sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (segment_->answer_signal.load(std::memory_order_seq_cst) == seen) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::min(until - Clock::now(), Clock::duration(kMaxSleep)));
    if (left.count() > 0) wait_on(segment_->answer_signal, seen, left);
  }
  segment_->sleepers.fetch_sub(1, std::memory_order_relaxed);
  // A node that died changes neither signal nor state. A node that closes the session changes both.
  const bool is_answered =
      segment_->answer_signal.load(std::memory_order_acquire) != seen && !is_closed();
  if (is_answered || !has_ended()) return;
  const std::lock_guard guard(mutex_);
  lose_all(ready);
}

}  // namespace atolldb
