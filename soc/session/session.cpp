#include "soc/session/session.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/process_id.h"
#include "shared/base/try.h"
#include "shared/memory/segment_file.h"
#include "shared/memory/segment_space.h"
#include "shared/sync/racy_copy.h"
#include "shared/sync/wait_word.h"
#include "soc/session/session_server.h"

namespace atolldb {
namespace {

/// Limit of the input buffer that a call keeps for the next request in its slot. A larger buffer is
/// freed.
constexpr size_t kKeptBytes = 4096;
/// Parts of a long input that are copied before the other sessions get their turn.
constexpr int kPartsPerTurn = 8;

void format(SessionSegment& segment, uint32_t node, uint32_t number, uint64_t incarnation,
            const PayloadLimits& payloads) {
  const ProcessId self = this_process();
  SegmentHeader& header = segment.header;
  header.layout_version = kLayoutVersion;
  header.kind = SegmentKind::session;
  header.layout_hash = layout_hash();
  header.owner_pid = self.pid;
  header.owner_start_time = self.start_time;
  header.size_bytes = kSessionSegmentBytes;
  header.node = node;
  header.real_page_bytes = 4096;
  header.magic = kSegmentMagic;
  segment.incarnation = incarnation;
  segment.session_layout_version = kSessionLayoutVersion;
  segment.node = node;
  segment.session = number;
  segment.max_input_bytes = payloads.max_input_bytes;
  segment.max_output_bytes = payloads.max_output_bytes;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(SessionServer& server, UniqueFd socket,
                                               uint32_t node, uint32_t number,
                                               uint64_t incarnation) {
  const std::string name = segment_name(SegmentKind::session, node) + std::to_string(number);
  ATOLL_ASSIGN(UniqueFd file, create_session_file(name, kSessionSegmentBytes));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) {
    return make_error(ExitCode::resources,
                      name + ": eventfd: " + std::strerror(errno) + ": raise `ulimit -n`");
  }
  Result<MappedSegment> memory = MappedSegment::map(file.get(), kSessionSegmentBytes, true);
  if (!memory) {
    return make_error(ExitCode::resources, name + ": cannot be mapped: " + memory.error().message);
  }
  format(*reinterpret_cast<SessionSegment*>(memory->base()), node, number, incarnation,
         server.payloads());
  std::unique_ptr<Session> session(
      new Session(server, std::move(socket), std::move(wake), *std::move(memory), number));
  session->incarnation_ = incarnation;
  SessionWelcome welcome{};
  welcome.magic = kSessionMagic;
  welcome.layout_version = kSessionLayoutVersion;
  welcome.segment_bytes = kSessionSegmentBytes;
  // The client gets its own descriptor of the same eventfd.
  SessionDescriptors given{std::move(file), UniqueFd(session->wake())};
  const bool sent = send_welcome(session->socket(), welcome, &given);
  [[maybe_unused]] const int kept = given.wake.release();
  if (!sent) return make_error(ExitCode::failed, name + ": its client is gone already");
  return session;
}

Session::Session(SessionServer& server, UniqueFd socket, UniqueFd wake, MappedSegment memory,
                 uint32_t number)
    : server_(server),
      socket_(std::move(socket)),
      wake_(std::move(wake)),
      memory_(std::move(memory)),
      segment_(reinterpret_cast<SessionSegment*>(memory_.base())),
      number_(number),
      peer_(session_peer(socket_.get())) {
  static_assert(sizeof(SessionSegment) <= kSessionSegmentBytes);
  CHECK(segment_ != nullptr && segment_->session == number);
}

Session::~Session() = default;

bool Session::has_request() const {
  // seq_cst: this load follows the exchange in announce_sleep. It pairs with the client, which
  // stores the tail, makes a full fence, and then loads node_sleeps.
  return segment_->requests.tail.load(std::memory_order_seq_cst) != requests_head_;
}

bool Session::announce_sleep() {
  // A read-modify-write (R24). seq_cst, so that has_request loads the tail of the ring later.
  segment_->node_sleeps.exchange(1, std::memory_order_seq_cst);
  return has_request();
}

Session::Taken Session::refuse(SessionCall& call, std::string why) const {
  call.outcome.status = Status::invalid_argument;
  call.outcome.message = std::move(why);
  return Taken::invalid;
}

Session::Taken Session::take(uint32_t& slot) {
  if (arriving_) return take_parts(slot);
  // Acquire pairs with the client's release: entry and slot are filled.
  const uint32_t count = segment_->requests.tail.load(std::memory_order_acquire) - requests_head_;
  if (count == 0) return Taken::nothing;
  if (count > kSessionSlots) return Taken::broken;
  slot = segment_->requests.entries[requests_head_ % kSessionSlots].load(std::memory_order_relaxed);
  if (slot >= kSessionSlots) return Taken::broken;
  SessionCall& call = calls_[slot];
  // Acquire pairs with the release in `put_answer`: the answering thread has finished with the
  // call.
  if (call.in_flight.load(std::memory_order_acquire)) {
    // Acquire pairs with the release in `put_answer`: the first part was sent.
    if (!call.sends_parts.load(std::memory_order_acquire)) return Taken::broken;
    ++requests_head_;
    send_part(slot);
    return Taken::part;
  }
  // The request is copied once, and the copy is validated, because the client can change the
  // segment at any time (R41).
  SessionRequest request;
  racy_read(&request, &segment_->slots[slot].request, sizeof(request));
  const bool has_parts = request.input_bytes > kSessionPartBytes &&
                         request.input_bytes <= server_.payloads().max_input_bytes;
  const uint32_t parts = has_parts ? session_parts(request.input_bytes) : 1;
  if (parts > count) return Taken::broken;  // the client puts all parts in at once
  ++requests_head_;
  call.in_flight.store(true, std::memory_order_relaxed);
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  const Taken taken = accept(call, request, segment_->slots[slot]);
  if (!has_parts) return taken;
  if (taken == Taken::request) return begin_parts(call, slot, request);
  requests_head_ += parts - 1;
  return taken;
}

Session::Taken Session::begin_parts(SessionCall& call, uint32_t slot,
                                    const SessionRequest& request) {
  if (auto refusal = server_.sink().take_input_memory(call, request.input_bytes)) {
    server_.sink().refuse(call, *std::move(refusal));
    requests_head_ += session_parts(request.input_bytes) - 1;
    return Taken::invalid;
  }
  // Reserves address space. The parts touch the memory one after another.
  call.input.reserve(request.input_bytes);
  call.arrived_ns = monotonic_time_ns();
  arriving_ = slot;
  return Taken::part;
}

Session::Taken Session::take_parts(uint32_t& slot) {
  slot = *arriving_;
  SessionCall& call = calls_[slot];
  DCHECK(call.in_flight.load(std::memory_order_relaxed));
  for (int i = 0; i < kPartsPerTurn && call.input.size() < call.input_bytes; ++i) {
    const uint32_t at =
        segment_->requests.entries[requests_head_ % kSessionSlots].load(std::memory_order_relaxed);
    if (at >= kSessionSlots) return Taken::broken;
    ++requests_head_;
    const size_t before = call.input.size();
    const size_t bytes = std::min<size_t>(kSessionPartBytes, call.input_bytes - before);
    call.input.resize(before + bytes);
    racy_read(call.input.data() + before, segment_->slots[at].data.data(), bytes);
  }
  if (call.input.size() < call.input_bytes) return Taken::part;
  arriving_.reset();
  return Taken::request;
}

Session::InFlight Session::find_in_flight() const {
  InFlight found;
  for (const SessionCall& call : calls_) {
    // Relaxed: this thread has written what it reads of the call.
    if (!call.in_flight.load(std::memory_order_relaxed)) continue;
    ++found.count;
    if (found.oldest == nullptr || call.arrived_ns < found.oldest->arrived_ns) found.oldest = &call;
  }
  return found;
}

Session::Taken Session::accept(SessionCall& call, const SessionRequest& request,
                               SessionSlot& shared) const {
  call.id = request.id;
  call.affinity = request.affinity;
  call.worker = request.worker;
  call.answer_at = request.answer_at;
  call.isolation = request.isolation;
  call.mode = {Isolation::serializable, request.snapshot};
  call.max_output_bytes = server_.payloads().max_output_bytes;
  call.outcome = {};
  call.input.clear();
  call.procedure.clear();
  if (request.answer_at != AnswerAt::durable && request.answer_at != AnswerAt::precommitted) {
    call.answer_at = AnswerAt::durable;
    return refuse(call, "answer_at " + std::to_string(static_cast<uint32_t>(request.answer_at)) +
                            " is neither durable (0) nor precommitted (1)");
  }
  if (request.name_bytes == 0 || request.name_bytes > kMaxSessionProcedureName) {
    return refuse(call, "the procedure's name has " + std::to_string(request.name_bytes) +
                            " bytes, not 1 to " + std::to_string(kMaxSessionProcedureName));
  }
  if (request.input_bytes > server_.payloads().max_input_bytes) {
    return refuse(call, "the input has " + std::to_string(request.input_bytes) +
                            " bytes, more than " +
                            std::to_string(server_.payloads().max_input_bytes) +
                            ": raise procedures.max_input");
  }
  call.procedure.assign(request.name.data(), request.name_bytes);
  call.input.resize(std::min(request.input_bytes, kSessionPartBytes));
  if (!call.input.empty()) racy_read(call.input.data(), shared.data.data(), call.input.size());
  return Taken::request;
}

void Session::wake_client() {
  // seq_cst, so that `sleepers` is loaded later. Pairs with the client, which increments `sleepers`
  // and then compares answer_signal again.
  segment_->answer_signal.fetch_add(1, std::memory_order_seq_cst);
  if (segment_->sleepers.load(std::memory_order_seq_cst) != 0) {
    atolldb::wake(segment_->answer_signal, kWakeAll);
  }
}

void Session::leave_queue() { server_.signal_end(); }

void Session::answer(uint32_t slot) {
  SessionCall& call = this->call(slot);
  DCHECK(call.in_flight.load(std::memory_order_relaxed));
  const ProcedureOutcome& outcome = call.outcome;
  DCHECK(outcome.status < Status::count_);
  SessionAnswer answer{};
  answer.id = call.id;
  answer.commit_epoch = outcome.commit_epoch;
  answer.commit_version = outcome.commit_version;
  answer.incarnation = incarnation_;
  answer.answered_at = call.answer_at;
  answer.status = outcome.status;
  answer.output_bytes = static_cast<uint32_t>(outcome.output.size());
  answer.message_bytes =
      static_cast<uint32_t>(std::min<size_t>(outcome.message.size(), kMaxSessionMessageBytes));
  copy_bytes(answer.message.data(), outcome.message.data(), answer.message_bytes);
  SessionSlot& shared = segment_->slots[slot];
  racy_write(&shared.answer, &answer, offsetof(SessionAnswer, message) + answer.message_bytes);
  call.sent_bytes = std::min<size_t>(outcome.output.size(), kSessionPartBytes);
  if (call.sent_bytes != 0) {
    racy_write(shared.data.data(), outcome.output.data(), call.sent_bytes);
  }
  put_answer(slot);
}

void Session::send_part(uint32_t slot) {
  SessionCall& call = this->call(slot);
  const std::vector<std::byte>& output = call.outcome.output;
  DCHECK(call.sent_bytes < output.size());
  const size_t bytes = std::min<size_t>(output.size() - call.sent_bytes, kSessionPartBytes);
  racy_write(segment_->slots[slot].data.data(), output.data() + call.sent_bytes, bytes);
  call.sent_bytes += bytes;
  put_answer(slot);
}

void Session::free_buffers(SessionCall& call) {
  call.outcome = {};
  call.input_memory = {};
  if (call.input.capacity() > kKeptBytes) free_buffer(call.input);
}

void Session::end_sending(SessionCall& call, uint32_t slot) {
  // Only the session thread ends a call that sends parts, so relaxed suffices.
  if (!call.sends_parts.load(std::memory_order_relaxed)) return;
  call.sends_parts.store(false, std::memory_order_relaxed);
  std::erase(sending_, slot);
  sending_count_.store(static_cast<uint32_t>(sending_.size()), std::memory_order_relaxed);
}

void Session::put_answer(uint32_t slot) {
  SessionCall& call = this->call(slot);
  SessionServer& server = server_;
  bool is_last = call.sent_bytes == call.outcome.output.size();
  bool is_first = false;
  if (is_last) {
    free_buffers(call);
  } else {
    free_long_input(call);
    call.progress_ns = monotonic_time_ns();
    // This thread counts as a call, too: the session thread may end the call, and must not free the
    // session before this function returns.
    in_flight_.fetch_add(1, std::memory_order_relaxed);
  }
  const bool counts_twice = !is_last;
  {
    const std::lock_guard guard(answers_mutex_);
    if (!is_last && is_dropped_) {
      free_buffers(call);
      is_last = true;
    }
    if (is_last) {
      end_sending(call, slot);
      ++answered_;
      // This store precedes the entry in the ring, because the client may use the slot again when
      // it sees the entry. Release pairs with the acquire in `take`.
      call.in_flight.store(false, std::memory_order_release);
    } else if (!call.sends_parts.load(std::memory_order_relaxed)) {
      is_first = true;
      sending_.push_back(slot);
      sending_count_.store(static_cast<uint32_t>(sending_.size()), std::memory_order_relaxed);
      // Release pairs with the acquire in `take`: the session thread continues with the call.
      call.sends_parts.store(true, std::memory_order_release);
    }
    segment_->answers.put(answers_tail_++, slot);
  }
  wake_client();
  // A system call, which only long outputs need: the session thread watches the client from now on.
  if (is_first) server.wake();
  const uint32_t ended = is_last && counts_twice ? 2 : 1;
  // seq_cst pairs with the session thread, which sets SessionServer::waits_for_end_ and then loads
  // this count.
  const uint32_t in_flight = in_flight_.fetch_sub(ended, std::memory_order_seq_cst);
  DCHECK(in_flight >= ended);
  server.signal_end();
}

bool Session::has_asked(uint32_t slot) const {
  // Acquire pairs with the client's release: the entries are filled.
  const uint32_t tail = segment_->requests.tail.load(std::memory_order_acquire);
  const uint32_t count = tail - requests_head_;
  if (count > kSessionSlots) return true;  // `take` ends the session
  for (uint32_t at = requests_head_; at != tail; ++at) {
    // Relaxed: the load of the tail orders it.
    const auto& entry = segment_->requests.entries[at % kSessionSlots];
    if (entry.load(std::memory_order_relaxed) == slot) return true;
  }
  return false;
}

bool Session::is_stalled(uint64_t since_ns) const {
  if (!sends_parts()) return false;
  const std::lock_guard guard(answers_mutex_);
  return std::ranges::any_of(sending_, [&](uint32_t slot) {
    return calls_[slot].progress_ns < since_ns && !has_asked(slot);
  });
}

void Session::drop_outputs() {
  const std::lock_guard guard(answers_mutex_);
  is_dropped_ = true;
  for (const uint32_t slot : std::vector(sending_)) {
    SessionCall& call = calls_[slot];
    free_buffers(call);
    end_sending(call, slot);
    call.in_flight.store(false, std::memory_order_release);
    in_flight_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void Session::close() {
  // Release pairs with the client's acquire. A client that sees the state sees all earlier answers.
  segment_->state.store(static_cast<uint32_t>(SessionState::closed), std::memory_order_release);
  wake_client();
}

}  // namespace atolldb
