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

void format(SessionSegment& segment, uint32_t node, uint32_t number, uint64_t incarnation) {
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
  format(*reinterpret_cast<SessionSegment*>(memory->base()), node, number, incarnation);
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
  // Acquire pairs with the client's release: entry and slot are filled.
  const uint32_t count = segment_->requests.tail.load(std::memory_order_acquire) - requests_head_;
  if (count == 0) return Taken::nothing;
  if (count > kSessionSlots) return Taken::broken;
  slot = segment_->requests.entries[requests_head_ % kSessionSlots].load(std::memory_order_relaxed);
  if (slot >= kSessionSlots) return Taken::broken;
  SessionCall& call = calls_[slot];
  // Acquire pairs with the release in `answer`: the answering thread has finished with the call.
  if (call.in_flight.load(std::memory_order_acquire)) return Taken::broken;
  ++requests_head_;
  call.in_flight.store(true, std::memory_order_relaxed);
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  return accept(call, segment_->slots[slot]);
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

Session::Taken Session::accept(SessionCall& call, SessionSlot& shared) const {
  // The request is copied once, and the copy is validated, because the client can change the
  // segment at any time (R41).
  SessionRequest request;
  racy_read(&request, &shared.request, sizeof(request));
  call.id = request.id;
  call.affinity = request.affinity;
  call.worker = request.worker;
  call.answer_at = request.answer_at;
  call.isolation = request.isolation;
  call.mode = {Isolation::serializable, request.snapshot};
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
  if (request.input_bytes > kMaxSessionInputBytes) {
    return refuse(call, "the input has " + std::to_string(request.input_bytes) +
                            " bytes, more than " + std::to_string(kMaxSessionInputBytes));
  }
  call.procedure.assign(request.name.data(), request.name_bytes);
  call.input.resize(request.input_bytes);
  if (request.input_bytes != 0) {
    racy_read(call.input.data(), shared.data.data(), request.input_bytes);
  }
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
  answer.output_bytes =
      static_cast<uint32_t>(std::min<size_t>(outcome.output.size(), kMaxSessionOutputBytes));
  answer.message_bytes =
      static_cast<uint32_t>(std::min<size_t>(outcome.message.size(), kMaxSessionMessageBytes));
  copy_bytes(answer.message.data(), outcome.message.data(), answer.message_bytes);
  SessionSlot& shared = segment_->slots[slot];
  racy_write(&shared.answer, &answer, offsetof(SessionAnswer, message) + answer.message_bytes);
  if (answer.output_bytes != 0) {
    racy_write(shared.data.data(), outcome.output.data(), answer.output_bytes);
  }
  call.outcome = {};
  if (call.input.capacity() > kKeptBytes) call.input = {};
  {
    const std::lock_guard guard(answers_mutex_);
    // This store precedes the entry in the ring, because the client may use the slot again when it
    // sees the entry. Release pairs with the acquire in `take`.
    call.in_flight.store(false, std::memory_order_release);
    segment_->answers.put(static_cast<uint32_t>(answered_++), slot);
  }
  wake_client();
  SessionServer& server = server_;
  // seq_cst pairs with the session thread, which sets SessionServer::waits_for_end_ and then loads
  // this count.
  const uint32_t in_flight = in_flight_.fetch_sub(1, std::memory_order_seq_cst);
  DCHECK(in_flight > 0);
  server.signal_end();
}

void Session::close() {
  // Release pairs with the client's acquire. A client that sees the state sees all earlier answers.
  segment_->state.store(static_cast<uint32_t>(SessionState::closed), std::memory_order_release);
  wake_client();
}

}  // namespace atolldb
