#include "soc/session/session_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/memory/epoch_stages.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

/// Tags of the epoll events that belong to no session. The socket of session n has the tag 2n, and
/// its eventfd 2n + 1.
constexpr uint64_t kOwnWake = ~uint64_t{0};
constexpr uint64_t kListener = kOwnWake - 1;
/// Maximum number of requests that a round takes from one session, before it turns to the next
/// session.
constexpr int kRequestsPerTurn = 64;
/// Number of idle passes over all rings before the thread sleeps. A client that got an answer often
/// sends its next request soon.
constexpr int kIdlePasses = 40;
/// Number of passes over all rings in which an idle worker finds no request before it sleeps. A
/// client that waits needs about one microsecond to send its next request.
constexpr int kHelpPasses = 200;
/// Maximum number of sessions with which workers help. A pass over more would take too long.
constexpr size_t kMaxHelpedSessions = 16;
/// Number of busy rounds between two checks of the sockets.
constexpr int kBusyRounds = 64;
/// Pause before a retry while a worker's queue is full. The end of a task that is no session
/// request makes room in the queue, but does not wake the session thread.
constexpr int kRetryMs = 1;
/// Pause before a retry of accept while no descriptor is free. Another part of the process may
/// close a descriptor. This does not wake the session thread.
constexpr std::chrono::milliseconds kAcceptPause{1000};
/// Longest time between two checks for clients that do not take their long outputs.
constexpr std::chrono::milliseconds kMostStallCheck{1000};

void drain_eventfd(int fd) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(fd, &count, sizeof(count));
}

void send_refusal(int socket, const std::string& why) {
  SessionWelcome welcome{};
  welcome.magic = kSessionMagic;
  welcome.layout_version = kSessionLayoutVersion;
  welcome.refused = 1;
  std::snprintf(welcome.message, sizeof(welcome.message), "%s", why.c_str());
  send_welcome(socket, welcome, nullptr);
}

}  // namespace

SessionServer::SessionServer(SessionServices services, Logger logger)
    : sink_(std::move(services)),
      services_(sink_.services()),
      logger_(std::move(logger)),
      controls_("node " + std::to_string(services_.node)) {}

Result<void> SessionServer::start() {
  CHECK(!thread_.joinable());
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.is_open() || !wake_.is_open() || !watch(wake_.get(), kOwnWake, EPOLLIN)) {
    return make_error(ExitCode::resources,
                      std::string("sessions: ") + std::strerror(errno) + ": raise `ulimit -n`");
  }
  controls_.open();
  thread_ = std::thread([this] { run(); });
  for (Worker* const worker : services_.workers) worker->help_with(*this);
  return {};
}

Result<void> SessionServer::listen(const std::string& path) {
  ATOLL_ASSIGN(UniqueFd listener, listen_for_sessions(path));
  const std::lock_guard guard(mutex_);
  listener_ = std::move(listener);
  if (watch(listener_.get(), kListener, EPOLLIN)) return {};
  return make_error(ExitCode::resources, std::string("sessions: epoll: ") + std::strerror(errno));
}

Result<UniqueFd> SessionServer::connect() {
  ATOLL_ASSIGN(auto ends, session_socket_pair());
  {
    const std::lock_guard guard(mutex_);
    arrived_.push_back(std::move(ends.first));
  }
  wake();
  return std::move(ends.second);
}

void SessionServer::stop() {
  if (!thread_.joinable()) return;
  // Release pairs with the thread's acquire.
  ends_.store(true, std::memory_order_release);
  wake();
  thread_.join();
}

bool SessionServer::watch(int fd, uint64_t what, uint32_t events) const {
  CHECK(fd >= 0);
  epoll_event event{};
  event.events = events;
  event.data.u64 = what;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void SessionServer::wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void SessionServer::signal_end() {
  // seq_cst: this load follows the caller's change of a counter of calls. It pairs with the session
  // thread, which sets the flag and then loads the counters.
  if (!waits_for_end_.load(std::memory_order_seq_cst)) return;
  // One wake-up is enough: the session thread sets the flag again before its next sleep.
  if (waits_for_end_.exchange(false, std::memory_order_seq_cst)) wake();
}

bool SessionServer::help(uint32_t ordinal, const std::function<bool()>& is_wanted) {
  // The session thread checks the rings for a short time before it sleeps.
  Lock serving(serving_, std::try_to_lock);
  for (int i = 0; i < kHelpPasses && !serving.owns_lock(); ++i) {
    if (wants_to_serve_.load(std::memory_order_relaxed) || is_wanted()) return false;
    spin_pause();
    serving.try_lock();
  }
  if (!serving.owns_lock()) return false;
  if (sessions_.empty() || sessions_.size() > kMaxHelpedSessions) return false;
  for (const auto& session : sessions_) session->end_sleep();
  idle_worker_ = ordinal;
  bool found = false;
  for (int pass = 0; pass < kHelpPasses && !is_wanted(); ++pass) {
    if (wants_to_serve_.load(std::memory_order_relaxed)) break;
    found = serve_all();
    if (found) break;
    spin_pause();
  }
  idle_worker_ = kAnyWorker;
  // The session thread sleeps, or wants to. From now on, clients wake it.
  const bool is_needed = !may_sleep() || holds_any();
  serving.unlock();
  if (is_needed) wake();
  return found;
}

void SessionServer::run() {
  Lock serving(serving_);
  int idle = 0;
  int busy = 0;
  // Acquire pairs with the release in stop.
  while (!ends_.load(std::memory_order_acquire)) {
    if (serve_all()) {
      idle = 0;
      if (++busy % kBusyRounds == 0) {
        handle_events(serving, 0);
        end_stalled();
      }
      continue;
    }
    if (++idle < kIdlePasses) {
      spin_pause();
      continue;
    }
    idle = 0;
    if (may_sleep()) handle_events(serving, sleep_ms());
    end_stalled();
    for (const auto& session : sessions_) session->end_sleep();
  }
  controls_.close();
  for (const auto& session : sessions_) session->close();
  free_ended();
  CHECK(ending_.empty());  // no call is in flight: see `stop`
  services_.metrics->open.fetch_sub(sessions_.size(), std::memory_order_relaxed);
  sessions_.clear();
}

bool SessionServer::holds_any() const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [](const auto& session) { return session->held.has_value(); });
}

bool SessionServer::sends_parts() const {
  return std::ranges::any_of(sessions_, [](const auto& session) { return session->sends_parts(); });
}

void SessionServer::end_stalled() {
  if (!sends_parts()) return;
  const uint64_t stalled_before_ns = payloads().stalled_before_ns(monotonic_time_ns());
  for (size_t i = 0; i < sessions_.size();) {
    if (!sessions_[i]->is_stalled(stalled_before_ns)) {
      ++i;
      continue;
    }
    logger_->warn("session {}: ends: its client took no part of an output for {} ms: see {}",
                  sessions_[i]->number(), payloads().transfer_timeout.count(),
                  "procedures.transfer_timeout");
    end_session(i, "its client does not take its outputs");
  }
}

int SessionServer::sleep_ms() const {
  if (holds_any()) return kRetryMs;
  if (sends_parts()) {
    const auto check = std::min(payloads().transfer_timeout / 4, kMostStallCheck);
    return std::max(static_cast<int>(check.count()), kRetryMs);
  }
  return accept_paused_ ? static_cast<int>(kAcceptPause.count()) : -1;
}

bool SessionServer::may_sleep() {
  // seq_cst, so that the counters are loaded later: see signal_end.
  waits_for_end_.store(holds_any() || !ending_.empty(), std::memory_order_seq_cst);
  free_ended();
  for (const auto& session : sessions_) {
    // A session with a held request takes no further request, so those in its ring do not keep this
    // thread awake.
    if (session->announce_sleep() && !session->held) return false;
  }
  return true;
}

bool SessionServer::serve_all() {
  bool did_something = false;
  for (size_t i = 0; i < sessions_.size();) {
    Session& session = *sessions_[i];
    did_something |= serve(session);
    // If `serve` has ended the session, the next session has moved to index i.
    if (i < sessions_.size() && sessions_[i].get() == &session) ++i;
  }
  return did_something;
}

bool SessionServer::serve(Session& session) {
  bool did_something = false;
  if (session.held) {
    if (!submit(session, *session.held)) return false;
    session.held.reset();
    did_something = true;
  }
  uint64_t arrived_ns = 0;  // the requests of one turn have arrived at the same time
  for (int i = 0; i < kRequestsPerTurn && !session.held; ++i) {
    uint32_t slot = 0;
    const Session::Taken taken = session.take(slot);
    if (taken == Session::Taken::nothing) return did_something;
    did_something = true;
    if (taken == Session::Taken::broken) {
      services_.metrics->broken.fetch_add(1, std::memory_order_relaxed);
      const auto place = std::find_if(sessions_.begin(), sessions_.end(),
                                      [&](const auto& one) { return one.get() == &session; });
      end_session(static_cast<size_t>(place - sessions_.begin()),
                  "its client broke the rules of the ring");
      return true;
    }
    if (taken == Session::Taken::part) return true;  // the other sessions get their turn
    if (arrived_ns == 0) arrived_ns = monotonic_time_ns();
    session.record_arrival(slot, arrived_ns);
    services_.metrics->requests.fetch_add(1, std::memory_order_relaxed);
    if (taken == Session::Taken::invalid) {
      session.answer(slot);
    } else {
      dispatch(session, slot);
    }
  }
  return did_something;
}

void SessionServer::refuse(Session& session, uint32_t slot, Refusal refusal) {
  sink_.refuse(session.call(slot), std::move(refusal));
  session.answer(slot);
}

void SessionServer::dispatch(Session& session, uint32_t slot) {
  if (auto refusal = sink_.admit(session.call(slot), idle_worker_)) {
    return refuse(session, slot, *std::move(refusal));
  }
  // Further requests, which arrived at the same time, go to all workers.
  if (session.call(slot).worker == idle_worker_) idle_worker_ = kAnyWorker;
  DCHECK(!session.held);
  if (!submit(session, slot)) session.held = slot;
}

bool SessionServer::submit(Session& session, uint32_t slot) {
  switch (sink_.submit(session.call(slot), session)) {
    case RequestSink::Submitted::yes:
      return true;
    case RequestSink::Submitted::full:
      return false;
    case RequestSink::Submitted::no:
      session.answer(slot);
      return true;
  }
  CHECK(false);
}

void SessionServer::handle_events(Lock& serving, int timeout_ms) {
  DCHECK(serving.owns_lock());
  std::array<epoll_event, 64> events;
  if (timeout_ms != 0) serving.unlock();
  const int count =
      epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  if (timeout_ms != 0) {
    // Relaxed: the mutex orders all else. Without the flag, workers that take the mutex again and
    // again could delay this thread.
    wants_to_serve_.store(true, std::memory_order_relaxed);
    serving.lock();
    wants_to_serve_.store(false, std::memory_order_relaxed);
  }
  for (int i = 0; i < count; ++i) {
    const uint64_t what = events[static_cast<size_t>(i)].data.u64;
    if (what == kOwnWake) {
      drain_eventfd(wake_.get());
      accept_all();
      serve_control();
      continue;
    }
    if (what == kListener) {
      accept_all();
      continue;
    }
    const auto place = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& session) {
      return session->number() == what / 2;
    });
    if (place == sessions_.end()) continue;  // an earlier event has ended the session
    // An event of the eventfd only wakes this thread. The node never reads the eventfd: the client
    // shares it, and may have made it blocking, or may have read it (R41).
    if (what % 2 == 1) continue;
    // A client sends nothing on this socket. Any event means that the client has ended or is
    // broken.
    end_session(static_cast<size_t>(place - sessions_.begin()), "its client has ended");
  }
  if (accept_paused_ && std::chrono::steady_clock::now() >= accept_again_) resume_accepting();
}

void SessionServer::pause_accepting(int error) {
  CHECK(!accept_paused_ && listener_.is_open());
  // Stops watching the listener, because the waiting clients would end every epoll_wait at once.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  accept_paused_ = true;
  accept_again_ = std::chrono::steady_clock::now() + kAcceptPause;
  if (std::exchange(accept_warned_, true)) return;
  logger_->warn("sessions: accept: {}: new clients wait until a session ends: raise `ulimit -n`",
                std::strerror(error));
}

void SessionServer::resume_accepting() {
  if (!accept_paused_) return;
  const std::lock_guard guard(mutex_);
  accept_paused_ = false;
  // The watch is level-triggered, so epoll reports clients that wait already. If the kernel has no
  // memory for the watch, the server retries later.
  if (!watch(listener_.get(), kListener, EPOLLIN)) pause_accepting(errno);
}

void SessionServer::accept_all() {
  std::vector<UniqueFd> arrived;
  {
    const std::lock_guard guard(mutex_);
    arrived.swap(arrived_);
    while (listener_.is_open()) {
      UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.is_open()) {
        const int error = errno;
        const bool has_run_out =
            error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
        if (has_run_out && !accept_paused_) pause_accepting(error);
        break;
      }
      accept_warned_ = false;
      arrived.push_back(std::move(socket));
    }
  }
  for (UniqueFd& socket : arrived) open_session(std::move(socket));
}

void SessionServer::open_session(UniqueFd socket) {
  CHECK(socket.is_open());
  if (sessions_.size() + ending_.size() >= kMaxSessionsPerNode) free_ended();
  if (sessions_.size() + ending_.size() >= kMaxSessionsPerNode) {
    services_.metrics->refused.fetch_add(1, std::memory_order_relaxed);
    return send_refusal(socket.get(), "session: node " + std::to_string(services_.node) + " has " +
                                          std::to_string(kMaxSessionsPerNode) +
                                          " sessions already: end one, or use another node");
  }
  const uint32_t number = sink_.next_session_number();
  const int descriptor = socket.get();
  auto session =
      Session::open(*this, std::move(socket), services_.node, number, services_.incarnation);
  if (!session) {
    logger_->warn("{}", session.error().message);
    return;
  }
  if (!watch(descriptor, uint64_t{number} * 2, EPOLLIN | EPOLLRDHUP) ||
      // Edge-triggered: each write is one event, so the node need not read the eventfd.
      !watch((*session)->wake(), uint64_t{number} * 2 + 1, EPOLLIN | EPOLLET)) {
    logger_->warn("session {}: epoll: {}", number, std::strerror(errno));
    return;
  }
  services_.metrics->open.fetch_add(1, std::memory_order_relaxed);
  services_.metrics->opened.fetch_add(1, std::memory_order_relaxed);
  sessions_.push_back(*std::move(session));
  logger_->debug("session {} is open", number);
}

void SessionServer::end_session(size_t index, const char* why) {
  CHECK(index < sessions_.size());
  Session& session = *sessions_[index];
  logger_->debug("session {} ends: {}", session.number(), why);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, session.socket(), nullptr);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, session.wake(), nullptr);
  session.close();
  if (session.held) refuse(session, *session.held, {Status::unavailable, "the session ends"});
  session.held.reset();
  if (session.arriving()) {
    refuse(session, *session.arriving(), {Status::unavailable, "the session ends"});
  }
  session.drop_outputs();
  ending_.push_back(std::move(sessions_[index]));
  sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(index));
}

void SessionServer::free_ended() {
  const size_t before = ending_.size();
  std::erase_if(ending_, [](const auto& session) { return session->in_flight() == 0; });
  services_.metrics->open.fetch_sub(before - ending_.size(), std::memory_order_relaxed);
  if (ending_.size() != before) resume_accepting();
}

}  // namespace atolldb
