// One-byte status of every call on the transaction path.
#pragma once

#include <cstdint>
#include <string_view>

namespace atolldb {

/// Status of an engine call. `ok` is zero. Values from `user_abort` on end the attempt: the
/// transaction must be rolled back. `is_retryable` says whether running it again can help.
enum class [[nodiscard]] Status : uint8_t {
  ok = 0,
  // Results of a call. The transaction continues after each of them.
  not_found,
  already_exists,
  end_of_scan,
  out_of_range,
  key_too_long,
  payload_too_long,
  invalid_argument,
  operation_not_supported,
  storage_not_found,
  storage_exists,
  procedure_not_found,
  // Aborts. The attempt has ended, and the transaction must be rolled back.
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
  /// A session's request was rejected without any effect, because the cluster starts or stops, or a
  /// limit of requests in flight or of their memory is reached. A later retry is safe.
  unavailable,
  /// The cluster failed while a session's request was in flight. It may have committed durably, or
  /// may be lost (R41). The client must read the data to find out.
  outcome_unknown,
  /// A page of a snapshot cannot be read, or is damaged. The log says which page.
  snapshot_unreadable,
  /// There is no snapshot yet, or no readable one with that id.
  snapshot_not_found,
  /// A transaction with `snapshot` isolation tried to write a record that has changed since the
  /// snapshot. A retry helps only after a later snapshot has been taken.
  snapshot_conflict,
  /// The transaction may only read, and a call tried to write.
  read_only_transaction,
  /// A request was rejected before it ran, because the cluster is recovering. Until recovery ends,
  /// only snapshot_read_only transactions run. A later retry is safe.
  recovering,
  /// A session's request was rejected before it ran, because the client's key lacks a right.
  permission_denied,
  count_,
};

inline constexpr uint32_t kStatusCount = static_cast<uint32_t>(Status::count_);

constexpr bool is_abort(Status status) { return status >= Status::user_abort; }

/// Returns whether another attempt may succeed. It may if the abort was caused by other
/// transactions, by the transaction's own installation of a page (R5), or by a slow logger. The
/// next attempt waits for a slow logger.
constexpr bool is_retryable(Status status) {
  return status == Status::read_conflict || status == Status::write_conflict ||
         status == Status::phantom || status == Status::pointer_installed ||
         status == Status::log_buffer_full;
}

/// Returns a stable lower-case name, for metrics labels, JSON and messages.
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

}  // namespace atolldb
