#include "shared/client/client_transport.h"

#include <algorithm>
#include <thread>

#include "shared/base/check.h"
#include "shared/kv/kv_request.h"

namespace atolldb {
namespace {

/// Pause between two attempts to connect to a node.
constexpr std::chrono::milliseconds kConnectPause{10};
/// Shortest time in which `connect_until_running` waits for the reply to its first request.
constexpr std::chrono::milliseconds kShortestProbe{100};

/// Sends a transaction without operations. Returns nothing if no reply comes within `patience`.
std::optional<SessionReply> probe(ClientTransport& client, Isolation isolation,
                                  std::chrono::milliseconds patience) {
  const auto ticket = client.submit("kv.txn", KvRequest().bytes(), {.isolation = isolation});
  if (ticket) return client.wait_for(*ticket, patience);
  SessionReply refused;
  refused.status = ticket.error();
  return refused;
}

}  // namespace

std::optional<SessionReply> ClientTransport::poll(SessionTicket ticket) {
  return wait_for(ticket, std::chrono::nanoseconds(0));
}

SessionReply ClientTransport::wait(SessionTicket ticket) {
  std::optional<SessionReply> reply = wait_for(ticket, kForEver);
  DCHECK(reply.has_value());
  return *std::move(reply);
}

SessionReply ClientTransport::call(std::string_view procedure, std::span<const std::byte> input,
                                   const SessionOptions& options) {
  SessionOptions waiting = options;
  waiting.waits_at_once = true;
  const auto ticket = submit(procedure, input, waiting);
  if (ticket) return wait(*ticket);
  SessionReply reply;
  reply.status = ticket.error();
  reply.incarnation = incarnation();
  reply.message = "the request was not sent: " + std::string(to_string(ticket.error()));
  return reply;
}

Result<std::unique_ptr<ClientTransport>> connect_until_running(
    const std::function<Result<std::unique_ptr<ClientTransport>>()>& connect,
    std::chrono::milliseconds patience, const std::function<bool()>& gives_up, Isolation isolation,
    const std::string& what) {
  CHECK(connect != nullptr && patience.count() >= 0);
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  const auto until =
      patience >= Clock::time_point::max() - now ? Clock::time_point::max() : now + patience;
  std::string why = "the cluster does not run";
  CHECK(connect != nullptr && !what.empty());
  for (;;) {
    auto client = connect();
    if (!client && client.error().code != ExitCode::not_running) return client;
    // A node accepts connections before its cluster runs. So this sends a transaction without
    // operations, which succeeds only if the cluster runs.
    if (client) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
      const auto reply = probe(**client, isolation, std::max(left, kShortestProbe));
      const bool is_refused = !reply || reply->status == Status::unavailable ||
                              reply->status == Status::recovering ||
                              reply->status == Status::outcome_unknown;
      if (!is_refused) return client;
      if (!reply) why = "its workers are busy";
      if (reply && !reply->message.empty()) why = reply->message;
    }
    if (Clock::now() >= until || (gives_up && gives_up())) {
      if (!client) why = client.error().message;
      return make_error(ExitCode::not_running, what + " runs no requests within " +
                                                   std::to_string(patience.count()) +
                                                   " ms: " + why + ": run `atoll status`");
    }
    std::this_thread::sleep_for(kConnectPause);  // a cluster that is down cannot wake this thread
  }
}

}  // namespace atolldb
