// Statuses and messages of the C interface, and the barrier that stops exceptions.
#pragma once

#include <exception>
#include <expected>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "shared/base/error.h"
#include "shared/base/status.h"
#include "shared/c_client/atoll_client.h"

namespace atolldb::c_client {

/// Why a call was refused, or has failed.
struct Failure {
  atoll_status status = ATOLL_INTERNAL_ERROR;
  std::string message;
};
template <typename T>
using Checked = std::expected<T, Failure>;

inline std::unexpected<Failure> fail(atoll_status status, std::string message) {
  return std::unexpected(Failure{status, std::move(message)});
}

/// Returns the refusal of a null pointer. `what` names the argument.
inline std::unexpected<Failure> null_argument(std::string_view what) {
  return fail(ATOLL_INVALID_ARGUMENT, std::string(what) + ": is NULL");
}

/// Returns the status of the C interface with the same value.
atoll_status status_of(Status status);

/// Returns the failure of an attempt to connect.
Failure connect_failure(const Error& error);

/// Sets the text of atoll_last_message for this thread, unless the status is ATOLL_OK. Keeps an
/// empty text if there is no memory. Returns the status.
atoll_status record_status(atoll_status status, std::string_view message) noexcept;

inline atoll_status record_status(const Failure& failure) noexcept {
  return record_status(failure.status, failure.message);
}

template <typename T>
atoll_status record_status(const Checked<T>& checked) noexcept {
  return checked ? ATOLL_OK : record_status(checked.error());
}

/// Runs the body of a function of the C interface. No exception leaves it.
template <typename Body>
atoll_status guarded(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return record_status(ATOLL_NO_MEMORY, "this process has no memory: check `ulimit -v`");
  } catch (const std::exception& error) {
    return record_status(ATOLL_INTERNAL_ERROR, error.what());
  } catch (...) {
    return record_status(ATOLL_INTERNAL_ERROR, "unknown exception");
  }
}

}  // namespace atolldb::c_client

/// Evaluates the expression, a Checked. If it has failed, records the failure, and returns its
/// status from a function of the C interface.
#define ATOLL_C_TRY(...)                                                \
  do {                                                                  \
    if (const auto& atoll_checked = (__VA_ARGS__); !atoll_checked) {    \
      return ::atolldb::c_client::record_status(atoll_checked.error()); \
    }                                                                   \
  } while (false)
