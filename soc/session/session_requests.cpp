// The control requests that sessions serve: `session.list` and `session.kill`.
#include <algorithm>
#include <string>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/memory/epoch_stages.h"
#include "soc/session/session_server.h"

namespace atolldb {
namespace {

Json describe_session(const Session& session, bool has_ended, uint64_t now_ns) {
  const Session::InFlight in_flight = session.find_in_flight();
  const SessionPeer& peer = session.peer();
  Json entry = describe({.number = session.number(),
                         .has_ended = has_ended,
                         .opened_ns = session.opened_ns(),
                         .answered = session.answered(),
                         .in_flight = in_flight.count,
                         .oldest = in_flight.oldest,
                         .last_arrived_ns = session.last_arrived_ns(),
                         .program = peer.program},
                        now_ns);
  if (peer.pid != 0) {
    entry["pid"] = peer.pid;
    entry["uid"] = peer.user;
  }
  return entry;
}

}  // namespace

void SessionServer::handle(const ControlRequest& request, const ControlReply& reply) {
  if (controls_.add(request, reply)) wake();
}

void SessionServer::serve_control() {
  const std::vector<ControlQueue::Waiting> waiting = controls_.take();
  if (waiting.empty()) return;
  for (const ControlQueue::Waiting& each : waiting) {
    free_ended();  // a list shows no session whose last call has ended
    each.reply(answer_to(each.request));
  }
  free_ended();
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
  for (const auto& session : sessions_) {
    sessions.push_back(describe_session(*session, false, now_ns));
  }
  for (const auto& session : ending_) sessions.push_back(describe_session(*session, true, now_ns));
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
