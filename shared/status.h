// The one-byte outcome of everything on the transaction path.
#pragma once

#include <cstdint>
#include <string_view>

namespace atolldb {

/// Outcome of an engine call. `ok` is zero. Values from `first_abort` on end the attempt: the
/// transaction must be rolled back, and `is_retryable` says whether running it again can help.
enum class [[nodiscard]] Status : uint8_t {
  ok = 0,
  // Answers: the transaction goes on.
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
  // Aborts: the attempt is over.
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
  /// Of a session's request: refused before it was run (the cluster starts or stops, a limit of
  /// requests in flight is reached). Trying again later is safe.
  unavailable,
  /// Of a session's request: the cluster failed while it was in flight, so that it may have
  /// committed durably or may be lost (R41). Only a look at the data tells.
  outcome_unknown,
  /// A page of a snapshot cannot be read, or is damaged: the log says which.
  snapshot_unreadable,
  /// There is no snapshot yet, or none of that id that could be read.
  snapshot_not_found,
  /// With `snapshot` isolation: a record that it writes has changed since its snapshot. Trying
  /// again helps only once there is a later one.
  snapshot_conflict,
  /// It may only read, and was about to write.
  read_only_transaction,
  /// Of a request: refused before it was run, since the cluster still recovers: until it runs, only
  /// snapshot_read_only transactions do. Trying again later is safe.
  recovering,
  count_,
};

inline constexpr uint32_t kStatusCount = static_cast<uint32_t>(Status::count_);

constexpr bool is_abort(Status status) { return status >= Status::user_abort; }

/// Aborts caused by other transactions, by the own installation of a page (R5), or by a logger that
/// is behind (the next attempt waits for it).
constexpr bool is_retryable(Status status) {
  return status == Status::read_conflict || status == Status::write_conflict ||
         status == Status::phantom || status == Status::pointer_installed ||
         status == Status::log_buffer_full;
}

/// Stable lower-case name: used in metrics labels, JSON and messages.
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
                                         "recovering"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == kStatusCount);
  const auto index = static_cast<uint32_t>(status);
  return index < kStatusCount ? kNames[index] : "unknown";
}

}  // namespace atolldb
