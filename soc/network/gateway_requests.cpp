// The control requests that the network port serves: `session.list` and `session.kill`.
#include <algorithm>
#include <utility>

#include "shared/base/try.h"
#include "shared/memory/epoch_stages.h"
#include "soc/network/gateway.h"
#include "soc/network/gateway_sockets.h"

namespace atolldb {
namespace {

Json describe_network_session(const NetworkSession& session, uint64_t now_ns) {
  Json entry = describe({.number = session.number,
                         .has_ended = session.has_ended,
                         .opened_ns = session.opened_ns,
                         .answered = session.answered,
                         .in_flight = session.in_flight(),
                         .oldest = session.oldest(),
                         .last_arrived_ns = session.last_arrived_ns,
                         .program = session.peer.program},
                        now_ns);
  entry["address"] = session.peer.address;
  entry["rights"] = rights_text(session.peer.rights);
  if (!session.peer.key_name.empty()) entry["key"] = session.peer.key_name;
  return entry;
}

}  // namespace

void NetworkGateway::handle(const ControlRequest& request, const ControlReply& reply) {
  if (controls_.add(request, reply)) wake();
}

void NetworkGateway::serve_control() {
  for (const ControlQueue::Waiting& each : controls_.take()) {
    probe_all();
    collect_ended();  // a list shows no session whose last call has ended
    each.reply(answer_to(each.request));
  }
}

Result<Json> NetworkGateway::answer_to(const ControlRequest& request) {
  switch (request.operation) {
    case ControlOperation::session_list:
      return list_sessions();
    case ControlOperation::session_kill:
      return kill_sessions(request);
    default:
      return unknown_op(request);
  }
}

Json NetworkGateway::list_sessions() const {
  const uint64_t now_ns = monotonic_time_ns();
  Json list = Json::array();
  for (const auto& [id, session] : sessions_) {
    list.push_back(describe_network_session(*session, now_ns));
  }
  for (const auto& session : ending_) list.push_back(describe_network_session(*session, now_ns));
  return {{"sessions", std::move(list)}};
}

Result<Json> NetworkGateway::kill_sessions(const ControlRequest& request) {
  Json killed = Json::array();
  const bool all = request.body.value("all", Json(false)) == Json(true);
  ATOLL_ASSIGN(const uint64_t number, all ? Result<uint64_t>(0) : get_number(request, "session"));
  for (const auto& [id, session] : sessions_) {
    if (!session->has_ended && (all || session->number == number)) {
      killed.push_back(kill_session(*session));
    }
  }
  if (!all && killed.empty()) {
    return make_error(ExitCode::failed, "session " + std::to_string(sink_.services().node) + "/" +
                                            std::to_string(number) +
                                            ": does not exist: see `atoll session ls`");
  }
  return Json{{"sessions", std::move(killed)}};
}

Json NetworkGateway::kill_session(NetworkSession& session) {
  const uint32_t in_flight = session.in_flight();
  logger_->info("network session {} of {} is killed; requests in flight: {}", session.number,
                session.peer.address, in_flight);
  refuse_session(session, RefusalCode::killed, "the session was killed: `atoll session kill`");
  return {{"session", session.number}, {"in_flight", in_flight}};
}

}  // namespace atolldb
