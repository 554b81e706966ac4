// The control requests that sessions serve: `session.list` and `session.kill`.
#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/memory/epoch_stages.h"
#include "soc/session/session_server.h"

namespace atolldb {
namespace {

double seconds_from(uint64_t begin_ns, uint64_t end_ns) {
  return static_cast<double>(ns_since(begin_ns, end_ns)) * 1e-9;
}

Json describe_session(const Session& session, const char* state, uint64_t now_ns) {
  Json entry = {{"session", session.number()},
                {"state", state},
                {"age_s", seconds_from(session.opened_ns(), now_ns)},
                {"answered", session.answered()}};
  if (const SessionPeer& peer = session.peer(); peer.pid != 0) {
    entry["pid"] = peer.pid;
    entry["uid"] = peer.user;
    if (!peer.program.empty()) entry["program"] = peer.program;
  }
  const Session::InFlight in_flight = session.find_in_flight();
  entry["in_flight"] = in_flight.count;
  if (in_flight.oldest != nullptr) {
    entry["oldest_procedure"] = in_flight.oldest->procedure;
    entry["oldest_s"] = seconds_from(in_flight.oldest->arrived_ns, now_ns);
  }
  if (session.last_arrived_ns() != 0) {
    entry["last_request_s"] = seconds_from(session.last_arrived_ns(), now_ns);
  }
  return entry;
}

}  // namespace

void SessionServer::handle(const ControlRequest& request, const ControlReply& reply) {
  const Result<void> queued = queue_control(request, reply);
  // The reply is called without the lock, because it may call this server again.
  if (!queued) return reply(std::unexpected(queued.error()));
  wake();
}

Result<void> SessionServer::queue_control(const ControlRequest& request,
                                          const ControlReply& reply) {
  const std::lock_guard guard(mutex_);
  if (!serves_control_) {
    return make_error(ExitCode::not_running, request.op + ": node " +
                                                 std::to_string(services_.node) +
                                                 ": does not serve sessions: it starts or stops");
  }
  if (waiting_controls_.size() >= kMaxWaitingControls) {
    return make_error(ExitCode::resources, request.op + ": node " + std::to_string(services_.node) +
                                               ": " + std::to_string(kMaxWaitingControls) +
                                               " requests wait already: try again later");
  }
  waiting_controls_.push_back({request, reply});
  return {};
}

void SessionServer::serve_control() {
  std::vector<WaitingControl> waiting;
  {
    const std::lock_guard guard(mutex_);
    waiting.swap(waiting_controls_);
  }
  if (waiting.empty()) return;
  for (const WaitingControl& each : waiting) {
    free_ended();  // a list shows no session whose last call has ended
    each.reply(answer_to(each.request));
  }
  free_ended();
}

void SessionServer::end_control() {
  std::vector<WaitingControl> waiting;
  {
    const std::lock_guard guard(mutex_);
    serves_control_ = false;
    waiting.swap(waiting_controls_);
  }
  for (const WaitingControl& each : waiting) {
    each.reply(make_error(ExitCode::not_running, each.request.op + ": node " +
                                                     std::to_string(services_.node) +
                                                     ": stops, so all of its sessions end"));
  }
}

Result<Json> SessionServer::answer_to(const ControlRequest& request) {
  switch (request.operation) {
    case ControlOperation::session_list:
      return list_sessions();
    case ControlOperation::session_kill:
      return kill_sessions(request);
    default:
      return unknown_op(request);
  }
}

Json SessionServer::list_sessions() const {
  const uint64_t now_ns = monotonic_time_ns();
  Json sessions = Json::array();
  for (const auto& session : sessions_)
    sessions.push_back(describe_session(*session, "open", now_ns));
  for (const auto& session : ending_)
    sessions.push_back(describe_session(*session, "ending", now_ns));
  DCHECK(sessions.size() <= kMaxSessionsPerNode);
  return {{"sessions", std::move(sessions)}};
}

Result<Json> SessionServer::kill_sessions(const ControlRequest& request) {
  const Json all = request.body.value("all", Json(false));
  if (!all.is_boolean()) {
    return make_error(ExitCode::usage, request.op + ": member \"all\" must be a boolean");
  }
  Json killed = Json::array();
  if (all.get<bool>()) {
    if (request.body.contains("session")) {
      return make_error(ExitCode::usage,
                        request.op + ": members \"all\" and \"session\" exclude each other");
    }
    while (!sessions_.empty()) killed.push_back(kill_session(0));
  } else {
    ATOLL_ASSIGN(const uint64_t number, get_number(request, "session"));
    ATOLL_ASSIGN(const size_t index, index_of(number));
    killed.push_back(kill_session(index));
  }
  return Json{{"sessions", std::move(killed)}};
}

Result<size_t> SessionServer::index_of(uint64_t number) const {
  const auto has_number = [number](const auto& session) { return session->number() == number; };
  const auto place = std::find_if(sessions_.begin(), sessions_.end(), has_number);
  if (place != sessions_.end()) return static_cast<size_t>(place - sessions_.begin());
  const bool ends = std::any_of(ending_.begin(), ending_.end(), has_number);
  return make_error(
      ExitCode::failed,
      "session " + std::to_string(services_.node) + "/" + std::to_string(number) +
          (ends ? ": has ended already, but its last requests run" : ": does not exist") +
          ": see `atoll session ls`");
}

Json SessionServer::kill_session(size_t index) {
  CHECK(index < sessions_.size());
  const Session& session = *sessions_[index];
  const uint32_t number = session.number();
  const uint32_t in_flight = session.find_in_flight().count;
  logger_->info("session {} of pid {} is killed; requests in flight: {}", number,
                session.peer().pid, in_flight);
  end_session(index, "a control request kills it");
  return {{"session", number}, {"in_flight", in_flight}};
}

}  // namespace atolldb
