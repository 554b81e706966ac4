// Requests that the caller does not wait for: pending requests and callbacks.
#include <chrono>
#include <memory>
#include <utility>

#include "shared/base/check.h"
#include "shared/c_client/request.h"

/// The handle. It keeps the session, so it remains usable after atoll_close and atoll_reconnect.
struct AtollPending {
  std::shared_ptr<atolldb::c_client::Session> session;
  atolldb::c_client::Request request;
  atolldb::SessionTicket ticket = 0;  // 0: the result was fetched
};

namespace atolldb::c_client {
namespace {

/// Gives the result to a function of the user. The result exists before the request is sent, so a
/// lack of memory cannot lose the call of the function.
class AwaitedByCallback final : public Awaited {
 public:
  AwaitedByCallback(Request request, atoll_callback callback, void* context)
      : request_(std::move(request)),
        callback_(callback),
        context_(context),
        result_(std::make_unique<AtollResult>()) {
    CHECK(callback_ != nullptr);
  }

  const Request& request() const { return request_; }

  void deliver(SessionReply reply) noexcept override {
    CHECK(result_ != nullptr);  // a callback runs once
    try {
      result_->outcome = decode(request_, std::move(reply));
    } catch (...) {
      result_->outcome.status = ATOLL_NO_MEMORY;
    }
    callback_(context_, result_.release());
  }

 private:
  const Request request_;
  const atoll_callback callback_;
  void* const context_;
  std::unique_ptr<AtollResult> result_;
};

/// Returns a timeout of the C interface. Negative and very long ones have no limit.
std::chrono::nanoseconds timeout_of(int64_t timeout_ms) {
  constexpr int64_t kMostMs = ClientTransport::kForEver.count() / 1'000'000;
  if (timeout_ms < 0 || timeout_ms > kMostMs) return ClientTransport::kForEver;
  const std::chrono::nanoseconds timeout = std::chrono::milliseconds(timeout_ms);
  DCHECK(timeout.count() >= 0);
  return timeout;
}

/// Checks what both forms of a submission have in common.
Checked<CallOptions> options_to_submit(atoll_connection* connection, const atoll_options* options,
                                       atoll_callback callback, atoll_pending** pending) {
  if (connection == nullptr) return null_argument("connection");
  if ((callback == nullptr) == (pending == nullptr)) {
    return fail(ATOLL_INVALID_ARGUMENT, "submit: give either callback or pending");
  }
  auto call = options_of(options, connection->connection->target().answer_at);
  if (call && call->timeout) {
    return fail(ATOLL_INVALID_ARGUMENT,
                "options.timeout_ms: is not 0: give it to atoll_pending_wait instead");
  }
  return call;
}

atoll_status submit(atoll_connection* connection, Request request, const CallOptions& options,
                    atoll_callback callback, void* context, atoll_pending** pending) {
  DCHECK((callback == nullptr) != (pending == nullptr));
  DCHECK(!options.timeout && options.session.waits_for_room);
  const auto session = connection->connection->session();
  ATOLL_C_TRY(session);
  const auto not_sent = [&session](Status status) {
    if (status == Status::payload_too_long) {
      return record_status(status_of(status), why_not_sent(status, **session));
    }
    return record_status(status_of(status),
                         "the request was not sent: fetch results, or call "
                         "atoll_reconnect if the session has ended");
  };
  if (callback != nullptr) {
    const auto awaited = std::make_shared<AwaitedByCallback>(std::move(request), callback, context);
    const Request& sending = awaited->request();
    const auto sent =
        (*session)->submit(sending.procedure, sending.input, options.session, awaited);
    return sent ? ATOLL_OK : not_sent(sent.error());
  }
  auto handle = std::make_unique<AtollPending>(*session, std::move(request));
  const auto ticket =
      (*session)->submit(handle->request.procedure, handle->request.input, options.session);
  if (!ticket) return not_sent(ticket.error());
  CHECK(*ticket != 0);
  handle->ticket = *ticket;
  *pending = handle.release();
  return ATOLL_OK;
}

}  // namespace
}  // namespace atolldb::c_client

using namespace atolldb;
using namespace atolldb::c_client;

atoll_status atoll_submit(atoll_connection* connection, const atoll_batch* batch,
                          const atoll_options* options, atoll_callback callback, void* context,
                          atoll_pending** pending) {
  return guarded([&]() -> atoll_status {
    if (pending != nullptr) *pending = nullptr;
    const auto call = options_to_submit(connection, options, callback, pending);
    ATOLL_C_TRY(call);
    auto request = batch_request_of(batch);
    ATOLL_C_TRY(request);
    return submit(connection, *std::move(request), *call, callback, context, pending);
  });
}

atoll_status atoll_submit_call(atoll_connection* connection, const char* procedure,
                               atoll_bytes input, const atoll_options* options,
                               atoll_callback callback, void* context, atoll_pending** pending) {
  return guarded([&]() -> atoll_status {
    if (pending != nullptr) *pending = nullptr;
    const auto call = options_to_submit(connection, options, callback, pending);
    ATOLL_C_TRY(call);
    auto request = procedure_request_of(procedure, input);
    ATOLL_C_TRY(request);
    return submit(connection, *std::move(request), *call, callback, context, pending);
  });
}

atoll_status atoll_pending_wait(atoll_pending* pending, int64_t timeout_ms, atoll_result** result) {
  return guarded([&]() -> atoll_status {
    if (result != nullptr) *result = nullptr;
    if (pending == nullptr) return record_status(null_argument("pending").error());
    DCHECK(pending->session != nullptr);
    if (pending->ticket == 0) {
      return record_status(ATOLL_INVALID_ARGUMENT, "pending: its result was fetched already");
    }
    auto reply = pending->session->client().wait_for(pending->ticket, timeout_of(timeout_ms));
    if (!reply) return record_status(ATOLL_PENDING, "the result has not arrived yet");
    pending->ticket = 0;
    return finish(decode(pending->request, *std::move(reply)), result);
  });
}

void atoll_pending_free(atoll_pending* pending) {
  if (pending == nullptr) return;
  guarded([&] {
    if (pending->ticket != 0) pending->session->abandon(pending->ticket);
    return ATOLL_OK;
  });
  delete pending;
}

atoll_status atoll_dispatch(atoll_connection* connection, int64_t timeout_ms, size_t* count) {
  return guarded([&]() -> atoll_status {
    if (count != nullptr) *count = 0;
    if (connection == nullptr) return record_status(null_argument("connection").error());
    const auto session = connection->connection->session();
    ATOLL_C_TRY(session);
    DCHECK(*session != nullptr);
    const size_t ran = (*session)->client().dispatch(timeout_of(timeout_ms));
    if (count != nullptr) *count = ran;
    return ATOLL_OK;
  });
}
