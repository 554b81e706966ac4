// Requests of the C interface: their arguments, options and results.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared/c_client/connection.h"
#include "shared/c_client/failure.h"
#include "shared/client/client_transport.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"

namespace atolldb::c_client {

/// Checks the arguments of an operation: pointers and limits.
Checked<std::string_view> storage_of(const char* storage);
Checked<KvBytes> key_of(atoll_bytes key, std::string_view what = "key");
Checked<KvBytes> value_of(atoll_bytes value);
Checked<KvBytes> delta_of(int number, const void* delta);

/// Checks a range, and returns it without its limit. A null pointer is the range of all keys.
Checked<KvScan> range_of(const atoll_range* range);
/// Returns the limit of a range that `range_of` has accepted; 0: no limit.
uint64_t limit_of(const atoll_range* range);

struct CallOptions {
  SessionOptions session;
  std::optional<std::chrono::milliseconds> timeout;
  bool only_sends = false;  // ATOLL_ACKNOWLEDGE_ACCEPTED
};
/// Checks options. `answer_at`: the default of the connection.
Checked<CallOptions> options_of(const atoll_options* options, AnswerAt answer_at);

/// Bytes of a request. `kv.*` requests have replies that this library decodes.
struct Request {
  std::string procedure;
  std::vector<std::byte> input;
  bool is_kv = false;
};
Request kv_request_of(const KvRequest& request);
/// Refuses a batch that is null or empty.
Checked<Request> batch_request_of(const atoll_batch* batch);
Checked<Request> procedure_request_of(const char* procedure, atoll_bytes input);

/// What a request has led to. `results` point into `reply.output`.
struct Outcome {
  atoll_status status = ATOLL_OK;
  std::string message;
  SessionReply reply;
  std::vector<KvResultView> results;
};

Outcome outcome_of(Failure failure);
/// Decodes the reply to a request.
Outcome decode(const Request& request, SessionReply reply);
/// Returns why `submit` has not sent a request.
std::string why_not_sent(Status status, Session& session);
/// Sends a request, and waits for its reply. With `only_sends` it does not wait, and the outcome of
/// a request that was sent is ok, without results.
Outcome send(Session& session, const Request& request, const CallOptions& options);

/// Sets `*result`, if `result` is not null, and the message of this thread. Returns the status.
atoll_status finish(Outcome outcome, atoll_result** result);

}  // namespace atolldb::c_client

struct AtollResult {
  atolldb::c_client::Outcome outcome;
};

/// The handle of a batch. Its operations keep their limits, so `request` is never too long.
struct AtollBatch {
  atolldb::KvRequest request;
};
