// Calls of procedures by tests, each in a session of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "shared/base/error.h"
#include "shared/client/session_client.h"

namespace atolldb::test {

/// Calls a procedure, and waits for the answer. `session`: the result of a connection. Without a
/// session, the status is `unavailable`, and the message is the error.
inline SessionReply call_procedure(const Result<std::unique_ptr<SessionClient>>& session,
                                   std::string_view name, std::string_view input = "",
                                   const SessionOptions& options = {}) {
  if (session) return (*session)->call(name, std::as_bytes(std::span(input)), options);
  SessionReply reply;
  reply.status = Status::unavailable;
  reply.message = session.error().message;
  return reply;
}

/// `Cluster`: a class with `connect_session(node)`.
template <typename Cluster>
SessionReply call_procedure(Cluster& cluster, uint32_t node, std::string_view name,
                            std::string_view input = "", const SessionOptions& options = {}) {
  return call_procedure(cluster.connect_session(node), name, input, options);
}

/// Returns the output as text, or the name of the status if it is not ok.
inline std::string output_of(const SessionReply& reply) {
  if (reply.status != Status::ok) return std::string(to_string(reply.status));
  return {reinterpret_cast<const char*>(reply.output.data()), reply.output.size()};
}

}  // namespace atolldb::test
