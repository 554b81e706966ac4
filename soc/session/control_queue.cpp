#include "soc/session/control_queue.h"

#include <utility>

#include "shared/base/check.h"
#include "shared/memory/epoch_stages.h"

namespace atolldb {
namespace {

double seconds_from(uint64_t begin_ns, uint64_t end_ns) {
  return static_cast<double>(ns_since(begin_ns, end_ns)) * 1e-9;
}

}  // namespace

ControlQueue::ControlQueue(std::string server) : server_(std::move(server)) {
  CHECK(!server_.empty());
}

std::string ControlQueue::error_text(const ControlRequest& request, const std::string& why) const {
  return request.op + ": " + server_ + ": " + why;
}

void ControlQueue::open() {
  const std::lock_guard guard(mutex_);
  DCHECK(waiting_.empty());
  is_open_ = true;
}

bool ControlQueue::add(const ControlRequest& request, const ControlReply& reply) {
  Error error;
  {
    const std::lock_guard guard(mutex_);
    if (is_open_ && waiting_.size() < kMaxWaiting) {
      waiting_.push_back({request, reply});
      return true;
    }
    error = is_open_ ? Error{ExitCode::resources,
                             error_text(request, std::to_string(kMaxWaiting) +
                                                     " requests wait already: try again later")}
                     : Error{ExitCode::not_running,
                             error_text(request, "does not serve sessions: it starts or stops")};
  }
  // Without the lock, because the reply may call this queue again.
  reply(std::unexpected(std::move(error)));
  return false;
}

std::vector<ControlQueue::Waiting> ControlQueue::take() {
  const std::lock_guard guard(mutex_);
  return std::exchange(waiting_, {});
}

void ControlQueue::close() {
  std::vector<Waiting> waiting;
  {
    const std::lock_guard guard(mutex_);
    is_open_ = false;
    waiting.swap(waiting_);
  }
  DCHECK(waiting.size() <= kMaxWaiting);
  for (const Waiting& each : waiting) {
    each.reply(make_error(ExitCode::not_running,
                          error_text(each.request, "stops, so all of its sessions end")));
  }
}

Json describe(const SessionDescription& session, uint64_t now_ns) {
  Json entry = {{"session", session.number},
                {"state", session.has_ended ? "ending" : "open"},
                {"age_s", seconds_from(session.opened_ns, now_ns)},
                {"answered", session.answered},
                {"in_flight", session.in_flight}};
  if (!session.program.empty()) entry["program"] = session.program;
  if (session.oldest != nullptr) {
    DCHECK(session.in_flight > 0);
    entry["oldest_procedure"] = session.oldest->procedure;
    entry["oldest_s"] = seconds_from(session.oldest->arrived_ns, now_ns);
  }
  if (session.last_arrived_ns != 0) {
    entry["last_request_s"] = seconds_from(session.last_arrived_ns, now_ns);
  }
  return entry;
}

}  // namespace atolldb
