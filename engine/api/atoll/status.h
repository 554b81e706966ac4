// Statuses of all calls of a procedure. Needs C++17.
#pragma once

#include <cstdint>
#include <string_view>

namespace atoll_api {

/// Status of a call, and result of a procedure. Values from `user_abort` on end the attempt: return
/// them unchanged. The transaction continues after all other values.
enum class [[nodiscard]] Status : uint8_t {
  ok = 0,
  // Results of a call. The transaction continues after each of them.
  not_found,
  already_exists,
  end_of_scan,
  out_of_range,
  key_too_long,
  payload_too_long,
  /// An argument is invalid. Also: the transaction has ended, the calling thread does not run it,
  /// or a Place or cursor is one of another transaction.
  invalid_argument,
  operation_not_supported,
  /// There is no such storage, or it was dropped since it was looked up.
  storage_not_found,
  storage_exists,
  procedure_not_found,
  // Aborts. The attempt has ended.
  /// The procedure decided to roll back.
  user_abort,
  read_conflict,
  write_conflict,
  phantom,
  pointer_installed,
  transaction_too_large,
  log_buffer_full,
  volatile_pool_exhausted,
  deadline_exceeded,
  procedure_failed,
  cluster_failed,
  unavailable,
  outcome_unknown,
  snapshot_unreadable,
  snapshot_not_found,
  snapshot_conflict,
  /// The transaction may only read, and a call tried to write.
  read_only_transaction,
  recovering,
  permission_denied,
  count_,
};

inline constexpr uint32_t kStatusCount = static_cast<uint32_t>(Status::count_);

/// Returns whether the status ends the attempt.
constexpr bool is_abort(Status status) { return status >= Status::user_abort; }

/// Returns a stable lower-case name.
constexpr std::string_view to_string(Status status) {
  constexpr std::string_view kNames[] = {"ok",
                                         "not_found",
                                         "already_exists",
                                         "end_of_scan",
                                         "out_of_range",
                                         "key_too_long",
                                         "payload_too_long",
                                         "invalid_argument",
                                         "operation_not_supported",
                                         "storage_not_found",
                                         "storage_exists",
                                         "procedure_not_found",
                                         "user_abort",
                                         "read_conflict",
                                         "write_conflict",
                                         "phantom",
                                         "pointer_installed",
                                         "transaction_too_large",
                                         "log_buffer_full",
                                         "volatile_pool_exhausted",
                                         "deadline_exceeded",
                                         "procedure_failed",
                                         "cluster_failed",
                                         "unavailable",
                                         "outcome_unknown",
                                         "snapshot_unreadable",
                                         "snapshot_not_found",
                                         "snapshot_conflict",
                                         "read_only_transaction",
                                         "recovering",
                                         "permission_denied"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == kStatusCount);
  const auto index = static_cast<uint32_t>(status);
  return index < kStatusCount ? kNames[index] : "unknown";
}

}  // namespace atoll_api
