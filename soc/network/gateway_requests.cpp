// The control requests that the network port serves: `session.list` and `session.kill`.
#include <algorithm>
#include <utility>

#include "shared/base/try.h"
#include "shared/memory/epoch_stages.h"
#include "soc/network/gateway.h"
#include "soc/network/gateway_sockets.h"

namespace atolldb {
namespace {

double network_seconds(uint64_t begin_ns, uint64_t end_ns) {
  return static_cast<double>(ns_since(begin_ns, end_ns)) * 1e-9;
}

Json describe_network_session(const NetworkSession& session, uint64_t now_ns) {
  Json entry = {{"session", session.number},
                {"state", session.has_ended ? "ending" : "open"},
                {"age_s", network_seconds(session.opened_ns, now_ns)},
                {"answered", session.answered},
                {"in_flight", session.in_flight()},
                {"address", session.peer.address},
                {"rights", rights_text(session.peer.rights)}};
  if (!session.peer.key_name.empty()) entry["key"] = session.peer.key_name;
  if (!session.peer.program.empty()) entry["program"] = session.peer.program;
  if (const NetworkCall* const oldest = session.oldest()) {
    entry["oldest_procedure"] = oldest->procedure;
    entry["oldest_s"] = network_seconds(oldest->arrived_ns, now_ns);
  }
  if (session.last_arrived_ns != 0) {
    entry["last_request_s"] = network_seconds(session.last_arrived_ns, now_ns);
  }
  return entry;
}

}  // namespace

void NetworkGateway::handle(const ControlRequest& request, const ControlReply& reply) {
  const Result<void> queued = queue_control(request, reply);
  if (!queued) return reply(std::unexpected(queued.error()));
  wake();
}

Result<void> NetworkGateway::queue_control(const ControlRequest& request,
                                           const ControlReply& reply) {
  const std::string name = request.op + ": node " + std::to_string(sink_.services().node) + ": ";
  const std::lock_guard guard(mutex_);
  if (!serves_control_) {
    return make_error(ExitCode::not_running, name + "its network port starts or stops");
  }
  if (waiting_controls_.size() >= kMaxWaitingControls) {
    return make_error(ExitCode::resources, name + std::to_string(kMaxWaitingControls) +
                                               " requests wait already: try again later");
  }
  waiting_controls_.push_back({request, reply});
  return {};
}

void NetworkGateway::serve_control() {
  std::vector<WaitingControl> waiting;
  {
    const std::lock_guard guard(mutex_);
    waiting.swap(waiting_controls_);
  }
  for (const WaitingControl& each : waiting) {
    probe_all();
    collect_ended();  // a list shows no session whose last call has ended
    each.reply(answer_to(each.request));
  }
}

void NetworkGateway::end_control() {
  std::vector<WaitingControl> waiting;
  {
    const std::lock_guard guard(mutex_);
    serves_control_ = false;
    waiting.swap(waiting_controls_);
  }
  for (const WaitingControl& each : waiting) {
    each.reply(make_error(ExitCode::not_running,
                          each.request.op + ": the node stops, so all of its sessions end"));
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
