#include "shared/c_client/failure.h"

#include <array>

#include "shared/base/check.h"

namespace atolldb::c_client {
namespace {

/// The statuses of nodes in the C interface, in the order of their values.
constexpr std::array kNodeStatuses = {ATOLL_OK,
                                      ATOLL_NOT_FOUND,
                                      ATOLL_ALREADY_EXISTS,
                                      ATOLL_END_OF_SCAN,
                                      ATOLL_OUT_OF_RANGE,
                                      ATOLL_KEY_TOO_LONG,
                                      ATOLL_PAYLOAD_TOO_LONG,
                                      ATOLL_INVALID_ARGUMENT,
                                      ATOLL_OPERATION_NOT_SUPPORTED,
                                      ATOLL_STORAGE_NOT_FOUND,
                                      ATOLL_STORAGE_EXISTS,
                                      ATOLL_PROCEDURE_NOT_FOUND,
                                      ATOLL_USER_ABORT,
                                      ATOLL_READ_CONFLICT,
                                      ATOLL_WRITE_CONFLICT,
                                      ATOLL_PHANTOM,
                                      ATOLL_POINTER_INSTALLED,
                                      ATOLL_TRANSACTION_TOO_LARGE,
                                      ATOLL_LOG_BUFFER_FULL,
                                      ATOLL_VOLATILE_POOL_EXHAUSTED,
                                      ATOLL_DEADLINE_EXCEEDED,
                                      ATOLL_PROCEDURE_FAILED,
                                      ATOLL_CLUSTER_FAILED,
                                      ATOLL_UNAVAILABLE,
                                      ATOLL_OUTCOME_UNKNOWN,
                                      ATOLL_SNAPSHOT_UNREADABLE,
                                      ATOLL_SNAPSHOT_NOT_FOUND,
                                      ATOLL_SNAPSHOT_CONFLICT,
                                      ATOLL_READ_ONLY_TRANSACTION,
                                      ATOLL_RECOVERING,
                                      ATOLL_PERMISSION_DENIED};
static_assert(kNodeStatuses.size() == kStatusCount);
static_assert([] {
  for (size_t value = 0; value < kNodeStatuses.size(); ++value) {
    if (static_cast<size_t>(kNodeStatuses[value]) != value) return false;
  }
  return true;
}());
// One constant of each part shows that the order is that of status.h.
static_assert(ATOLL_PROCEDURE_NOT_FOUND == static_cast<int>(Status::procedure_not_found));
static_assert(ATOLL_USER_ABORT == static_cast<int>(Status::user_abort));
static_assert(ATOLL_DEADLINE_EXCEEDED == static_cast<int>(Status::deadline_exceeded));
static_assert(ATOLL_OUTCOME_UNKNOWN == static_cast<int>(Status::outcome_unknown));
static_assert(ATOLL_SNAPSHOT_CONFLICT == static_cast<int>(Status::snapshot_conflict));
static_assert(ATOLL_RECOVERING == static_cast<int>(Status::recovering));
static_assert(ATOLL_PERMISSION_DENIED == static_cast<int>(Status::permission_denied));

thread_local std::string last_message;

bool is_node_status(int status) { return static_cast<uint32_t>(status) < kStatusCount; }

}  // namespace

atoll_status status_of(Status status) {
  CHECK(status < Status::count_);
  return kNodeStatuses[static_cast<size_t>(status)];
}

Failure connect_failure(const Error& error) {
  CHECK(error.code != ExitCode::success);
  switch (error.code) {
    case ExitCode::not_running:
    case ExitCode::resources:
    case ExitCode::recovering:
      return {ATOLL_UNAVAILABLE, error.message};
    case ExitCode::config:
    case ExitCode::usage:
      return {ATOLL_INVALID_ARGUMENT, error.message};
    default:
      return {ATOLL_CONNECT_FAILED, error.message};
  }
}

atoll_status record_status(atoll_status status, std::string_view message) noexcept {
  if (status == ATOLL_OK) return status;
  DCHECK(std::string_view(atoll_status_name(status)) != "unknown");
  try {
    last_message.assign(atoll_status_name(status));
    if (!message.empty()) last_message.append(": ").append(message);
  } catch (...) {
    last_message.clear();
  }
  return status;
}

}  // namespace atolldb::c_client

using namespace atolldb;

const char* atoll_status_name(int status) {
  // The texts of status.h are literals, so they end in a zero.
  if (c_client::is_node_status(status)) return to_string(static_cast<Status>(status)).data();
  switch (status) {
    case ATOLL_CONFLICT:
      return "conflict";
    case ATOLL_PENDING:
      return "pending";
    case ATOLL_CLOSED:
      return "closed";
    case ATOLL_NO_MEMORY:
      return "no_memory";
    case ATOLL_CONNECT_FAILED:
      return "connect_failed";
    case ATOLL_INTERNAL_ERROR:
      return "internal_error";
    default:
      return "unknown";
  }
}

int atoll_status_is_conflict(int status) {
  if (status == ATOLL_CONFLICT) return 1;
  return c_client::is_node_status(status) && is_retryable(static_cast<Status>(status)) ? 1 : 0;
}

const char* atoll_last_message() { return c_client::last_message.c_str(); }

const char* atoll_client_version() { return ATOLL_VERSION; }
