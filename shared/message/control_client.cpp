#include "shared/message/control_client.h"

#include <sys/stat.h>

#include <utility>

#include "shared/base/path_errors.h"
#include "shared/base/try.h"
#include "shared/message/control_connection.h"

namespace atolldb {

ControlClient::ControlClient(std::string endpoint) : endpoint_(std::move(endpoint)) {}

namespace {

constexpr const char* kAskStatus = "`atoll status` tells whether the cluster runs";

std::unexpected<Error> unreachable(const std::string& endpoint, const std::string& why,
                                   const std::string& what_to_do = kAskStatus) {
  return make_error(ExitCode::coordinator_unreachable, endpoint + ": " + why + ": " + what_to_do);
}

/// Checks the socket file before the connection. ZeroMQ would wait for a missing file until the
/// timeout. It also does not report which user listens, so this checks the owners of the file and
/// its parents.
Result<void> check_socket(const std::string& endpoint) {
  constexpr std::string_view kIpc = "ipc://";
  if (!endpoint.starts_with(kIpc)) return {};
  const std::string path = endpoint.substr(kIpc.size());
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return unreachable(endpoint, "there is no such socket");
  return check_socket_file(path, "control.endpoint");
}

std::unexpected<Error> too_long(std::string_view op, size_t bytes, size_t limit) {
  return make_error(ExitCode::usage, std::string(op) + ": the request has " +
                                         std::to_string(bytes) + " bytes, more than the limit of " +
                                         std::to_string(limit) + ": send less at a time");
}

}  // namespace

Result<Json> ControlClient::call(std::string_view op, const Json& body,
                                 std::chrono::milliseconds timeout,
                                 const std::function<bool()>& gave_up) const {
  const std::string request = encode_request(op, body);
  const size_t limit = control_limits(op).bytes;
  if (request.size() > limit) return too_long(op, request.size(), limit);
  ATOLL_TRY(check_socket(endpoint_));
  const std::string name(op);
  const std::string took = std::to_string(timeout.count()) + " ms";
  try {
    ControlConnection connection(endpoint_);
    zmq::message_t answer;
    switch (connection.call(request, timeout, gave_up, answer)) {
      case CallEnd::answered:
        return parse_answer(answer.to_string_view());
      case CallEnd::refused:
        return unreachable(endpoint_, name + ": no process accepts connections");
      case CallEnd::broken_off:
        return unreachable(endpoint_,
                           name +
                               ": the process ended before it answered: whether the request was "
                               "carried out is unknown",
                           "look before you repeat it, " + std::string(kAskStatus));
      case CallEnd::gave_up:
        return unreachable(endpoint_, name + ": given up, as the cluster stops");
      case CallEnd::timed_out:
        break;
    }
    return unreachable(endpoint_, name + " got no answer within " + took);
  } catch (const zmq::error_t& error) {
    return unreachable(endpoint_, name + ": " + error.what());
  }
}

}  // namespace atolldb
