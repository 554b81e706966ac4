// Error values of cold paths. A message names the object and the limit.
#pragma once

#include <expected>
#include <string>

namespace atolldb {

/// Exit codes of every Atoll binary. Users rely on them: the top-level README documents them.
enum class ExitCode : int {
  success = 0,
  failed = 1,
  usage = 2,
  not_running = 3,
  already_running = 4,
  coordinator_unreachable = 5,
  resources = 6,
  corruption = 7,
  durability = 8,
  recovering = 9,  // the cluster does not serve the request yet; try again later
  disk_full = 10,
  identity = 11,   // a directory is a copy, or was moved; run `atoll data adopt`
  condition = 12,  // a record is absent, exists or differs against the request
  config = 78,
};

/// `message` has the form "object: reason: what to do".
struct Error {
  ExitCode code = ExitCode::failed;
  std::string message;
};

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> make_error(ExitCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

}  // namespace atolldb
