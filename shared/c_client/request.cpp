#include "shared/c_client/request.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "shared/base/check.h"
#include "shared/session/session_layout.h"

namespace atolldb::c_client {
namespace {

static_assert(ATOLL_I32 == static_cast<int>(KvNumber::i32));
static_assert(ATOLL_I64 == static_cast<int>(KvNumber::i64));
static_assert(ATOLL_U32 == static_cast<int>(KvNumber::u32));
static_assert(ATOLL_U64 == static_cast<int>(KvNumber::u64));
static_assert(ATOLL_F64 == static_cast<int>(KvNumber::f64));
static_assert(ATOLL_ISOLATION_SERIALIZABLE == 1 + static_cast<int>(Isolation::serializable));
static_assert(ATOLL_ISOLATION_SNAPSHOT == 1 + static_cast<int>(Isolation::snapshot));
static_assert(ATOLL_ISOLATION_SNAPSHOT_READ_ONLY ==
              1 + static_cast<int>(Isolation::snapshot_read_only));
// The first version of the option structs. Later versions append members.
static_assert(sizeof(atoll_options) == 40 && sizeof(atoll_range) == 56);

/// Longest timeout of a request: a year.
constexpr int64_t kMaxTimeoutMs = int64_t{365} * 86'400'000;

std::string longer_than(std::string_view what, size_t bytes, size_t limit) {
  DCHECK(bytes > limit);
  return std::string(what) + ": " + std::to_string(bytes) + " bytes are more than " +
         std::to_string(limit);
}

/// Copies an option struct of any version. Missing members become 0, and unknown ones must be 0.
template <typename Options>
Checked<Options> read_struct(const Options* options, std::string_view what) {
  size_t bytes = 0;
  std::memcpy(&bytes, options, sizeof(bytes));
  // Sizes that are not plausible are not read.
  constexpr size_t kMostBytes = 4096;
  if (bytes < sizeof(bytes) || bytes > kMostBytes) {
    return fail(ATOLL_INVALID_ARGUMENT,
                std::string(what) + ".struct_size: " + std::to_string(bytes) +
                    " is no size of the struct: initialise it with its macro");
  }
  const char* from = reinterpret_cast<const char*>(options);
  const size_t known = std::min(bytes, sizeof(Options));
  if (std::any_of(from + known, from + bytes, [](char c) { return c != 0; })) {
    return fail(ATOLL_INVALID_ARGUMENT,
                std::string(what) + ": has options that this version of the library lacks");
  }
  Options copy{};
  DCHECK(known >= sizeof(bytes) && known <= sizeof(copy));
  std::memcpy(&copy, from, known);
  return copy;
}

}  // namespace

Checked<std::string_view> storage_of(const char* storage) {
  if (storage == nullptr) return null_argument("storage");
  const std::string_view name(storage);
  if (name.empty() || name.size() > kMaxKvStorageName) {
    return fail(ATOLL_INVALID_ARGUMENT, "storage: its name has " + std::to_string(name.size()) +
                                            " bytes, allowed are 1 to " +
                                            std::to_string(kMaxKvStorageName));
  }
  return name;
}

Checked<KvBytes> key_of(atoll_bytes key, std::string_view what) {
  if (key.data == nullptr && key.size != 0) return null_argument(what);
  if (key.size > kMaxKvKeyBytes) {
    return fail(ATOLL_KEY_TOO_LONG, longer_than(what, key.size, kMaxKvKeyBytes));
  }
  return KvBytes(static_cast<const std::byte*>(key.data), key.size);
}

Checked<KvBytes> value_of(atoll_bytes value) {
  if (value.data == nullptr && value.size != 0) return null_argument("value");
  if (value.size > kMaxKvValueBytes) {
    return fail(ATOLL_PAYLOAD_TOO_LONG, longer_than("value", value.size, kMaxKvValueBytes));
  }
  return KvBytes(static_cast<const std::byte*>(value.data), value.size);
}

Checked<KvBytes> delta_of(int number, const void* delta) {
  if (delta == nullptr) return null_argument("delta");
  const bool is_type = number >= ATOLL_I32 && number <= ATOLL_F64;
  const uint32_t bytes = is_type ? kv_number_bytes(static_cast<KvNumber>(number)) : 0;
  if (bytes == 0) {
    return fail(ATOLL_INVALID_ARGUMENT,
                "number: " + std::to_string(number) + " is no atoll_number");
  }
  DCHECK(bytes == 4 || bytes == 8);
  return KvBytes(static_cast<const std::byte*>(delta), bytes);
}

Checked<KvScan> range_of(const atoll_range* range) {
  if (range == nullptr) return KvScan{};
  const auto read = read_struct(range, "range");
  if (!read) return std::unexpected(read.error());
  const auto low = key_of(read->low, "range.low");
  if (!low) return std::unexpected(low.error());
  const auto high = key_of(read->high, "range.high");
  if (!high) return std::unexpected(high.error());
  KvScan scan;
  scan.low = *low;
  scan.has_low = read->low.data != nullptr;
  scan.high = *high;
  scan.has_high = read->high.data != nullptr;
  scan.reverse = read->reverse != 0;
  scan.keys_only = read->keys_only != 0;
  DCHECK(scan.limit == 0);
  return scan;
}

uint64_t limit_of(const atoll_range* range) {
  if (range == nullptr) return 0;
  const auto read = read_struct(range, "range");
  CHECK(read.has_value());
  return read->limit;
}

Checked<CallOptions> options_of(const atoll_options* options, AnswerAt answer_at) {
  CallOptions call;
  call.session.answer_at = answer_at;
  if (options == nullptr) return call;
  const auto read = read_struct(options, "options");
  if (!read) return std::unexpected(read.error());
  const auto refuse = [](const char* member, int64_t value, const std::string& allowed) {
    DCHECK(!allowed.empty());
    return fail(ATOLL_INVALID_ARGUMENT, std::string("options.") + member + ": " +
                                            std::to_string(value) + " is not " + allowed);
  };
  if (read->timeout_ms < 0 || read->timeout_ms > kMaxTimeoutMs) {
    return refuse("timeout_ms", read->timeout_ms, "from 0 to " + std::to_string(kMaxTimeoutMs));
  }
  if (read->acknowledge < 0 || read->acknowledge > ATOLL_ACKNOWLEDGE_ACCEPTED) {
    return refuse("acknowledge", read->acknowledge, "one of ATOLL_ACKNOWLEDGE_...");
  }
  if (read->isolation < 0 || read->isolation > ATOLL_ISOLATION_SNAPSHOT_READ_ONLY) {
    return refuse("isolation", read->isolation, "one of ATOLL_ISOLATION_...");
  }
  if (read->snapshot != 0 && read->isolation != ATOLL_ISOLATION_SNAPSHOT_READ_ONLY) {
    return refuse("snapshot", read->snapshot, "0, and the isolation is not snapshot_read_only");
  }
  if (read->reserved != 0) return refuse("reserved", read->reserved, "0");
  if (read->timeout_ms != 0) {
    call.timeout = std::chrono::milliseconds(read->timeout_ms);
    // A node must not begin a request for which no caller waits.
    call.session.start_within_ms =
        static_cast<uint32_t>(std::min<int64_t>(read->timeout_ms, UINT32_MAX));
    // A wait for a free slot would have no limit.
    call.session.waits_for_room = false;
  }
  if (read->acknowledge != ATOLL_ACKNOWLEDGE_DEFAULT) {
    call.session.answer_at =
        read->acknowledge == ATOLL_ACKNOWLEDGE_DURABLE ? AnswerAt::durable : AnswerAt::precommitted;
  }
  call.only_sends = read->acknowledge == ATOLL_ACKNOWLEDGE_ACCEPTED;
  if (read->isolation != ATOLL_ISOLATION_DEFAULT) {
    call.session.isolation = static_cast<Isolation>(read->isolation - 1);
  }
  call.session.snapshot = read->snapshot;
  call.session.affinity = read->affinity;
  DCHECK(!call.timeout || call.timeout->count() > 0);
  return call;
}

Request kv_request_of(const KvRequest& request) {
  const KvBytes bytes = request.bytes();
  DCHECK(request.count() >= 1 && request.count() <= kMaxKvOperations);
  DCHECK(!bytes.empty() && bytes.size() <= kMaxKvRequestBytes);
  return {"kv.txn", {bytes.begin(), bytes.end()}, true};
}

Checked<Request> batch_request_of(const atoll_batch* batch) {
  if (batch == nullptr) return null_argument("batch");
  if (batch->request.count() == 0) return fail(ATOLL_INVALID_ARGUMENT, "batch: has no operation");
  return kv_request_of(batch->request);
}

Checked<Request> procedure_request_of(const char* procedure, atoll_bytes input) {
  if (procedure == nullptr) return null_argument("procedure");
  const std::string_view name(procedure);
  if (name.empty() || name.size() > kMaxSessionProcedureName) {
    return fail(ATOLL_INVALID_ARGUMENT, "procedure: its name has " + std::to_string(name.size()) +
                                            " bytes, allowed are 1 to " +
                                            std::to_string(kMaxSessionProcedureName));
  }
  if (input.data == nullptr && input.size != 0) return null_argument("input");
  if (input.size > kMaxSessionInputBytes) {
    return fail(ATOLL_PAYLOAD_TOO_LONG, longer_than("input", input.size, kMaxSessionInputBytes));
  }
  const std::span bytes(static_cast<const std::byte*>(input.data), input.size);
  return Request{std::string(name), {bytes.begin(), bytes.end()}, false};
}

Outcome outcome_of(Failure failure) {
  DCHECK(failure.status != ATOLL_OK);
  Outcome outcome;
  outcome.status = failure.status;
  outcome.message = std::move(failure.message);
  return outcome;
}

Outcome decode(const Request& request, SessionReply reply) {
  DCHECK(!request.is_kv || !request.input.empty());
  Outcome outcome;
  outcome.status = status_of(reply.status);
  outcome.message = reply.message;
  outcome.reply = std::move(reply);
  if (!request.is_kv || outcome.status != ATOLL_OK) return outcome;
  auto results = read_kv_reply(outcome.reply.output, request.input);
  if (!results) {
    outcome.status = ATOLL_INTERNAL_ERROR;
    outcome.message = "the reply does not fit the request: use programs of one build";
    return outcome;
  }
  DCHECK(!results->empty() && results->size() <= kMaxKvOperations);
  outcome.results = *std::move(results);
  return outcome;
}

std::string why_not_sent(Status status, Session& session) {
  DCHECK(status != Status::ok);
  if (status == Status::payload_too_long) {
    return "the request was not sent: its input has more than " +
           std::to_string(session.client().max_input_bytes()) +
           " bytes, the limit of the cluster: raise procedures.max_input";
  }
  if (status != Status::unavailable) return "the request was not sent";
  return session.client().is_open()
             ? "the request was not sent: the connection has as many requests in flight as it "
               "may: fetch results, or try again later"
             : "the request was not sent: the session has ended: call atoll_reconnect";
}

Outcome send(Session& session, const Request& request, const CallOptions& options) {
  DCHECK(!request.procedure.empty() && request.procedure.size() <= kMaxSessionProcedureName);
  DCHECK(request.input.size() <= kMaxSessionInputBytes);
  DCHECK(options.timeout.has_value() != options.session.waits_for_room);
  if (options.only_sends) {
    const auto sent = session.send_only(request.procedure, request.input, options.session);
    return sent ? Outcome{}
                : outcome_of({status_of(sent.error()), why_not_sent(sent.error(), session)});
  }
  SessionOptions waiting = options.session;
  waiting.waits_at_once = true;
  const auto ticket = session.submit(request.procedure, request.input, waiting);
  if (!ticket) {
    return outcome_of({status_of(ticket.error()), why_not_sent(ticket.error(), session)});
  }
  DCHECK(*ticket != 0);
  if (!options.timeout) return decode(request, session.client().wait(*ticket));
  auto reply = session.client().wait_for(*ticket, *options.timeout);
  if (reply) return decode(request, *std::move(reply));
  session.abandon(*ticket);
  Outcome late =
      outcome_of({ATOLL_OUTCOME_UNKNOWN,
                  "there was no answer within " + std::to_string(options.timeout->count()) +
                      " ms: the request may still commit: read the data to find out"});
  late.reply.incarnation = session.client().incarnation();
  return late;
}

atoll_status finish(Outcome outcome, atoll_result** result) {
  const atoll_status status = record_status(outcome.status, outcome.message);
  if (result != nullptr) {
    DCHECK(*result == nullptr);
    *result = new AtollResult{std::move(outcome)};
  }
  return status;
}

}  // namespace atolldb::c_client
