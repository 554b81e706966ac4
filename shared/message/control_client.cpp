#include "shared/message/control_client.h"

#include <sys/stat.h>

#include <utility>
#include <zmq.hpp>

namespace atolldb {

struct ControlClient::Context {
  zmq::context_t zmq;
};

ControlClient::ControlClient(std::string endpoint)
    : endpoint_(std::move(endpoint)), context_(std::make_unique<Context>()) {}

ControlClient::~ControlClient() = default;

namespace {

std::unexpected<Error> unreachable(const std::string& endpoint, const std::string& why) {
  return make_error(ExitCode::coordinator_unreachable,
                    endpoint + ": " + why + ": `atoll status` tells whether the cluster runs");
}

/// ZeroMQ would wait for a socket file that is not there until the time-out.
bool is_missing(const std::string& endpoint) {
  constexpr std::string_view kIpc = "ipc://";
  if (!endpoint.starts_with(kIpc)) return false;
  struct stat info{};
  return stat(endpoint.c_str() + kIpc.size(), &info) != 0;
}

}  // namespace

Result<Json> ControlClient::call(std::string_view op, const Json& body,
                                 std::chrono::milliseconds timeout) const {
  const std::string request = encode_request(op, body);
  if (request.size() > kMaxControlBytes) {
    return make_error(ExitCode::usage, std::string(op) + ": the request has " +
                                           std::to_string(request.size()) +
                                           " bytes, more than the limit of " +
                                           std::to_string(kMaxControlBytes));
  }
  if (is_missing(endpoint_)) return unreachable(endpoint_, "there is no such socket");
  try {
    zmq::socket_t socket(context_->zmq, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::sndtimeo, static_cast<int>(timeout.count()));
    socket.set(zmq::sockopt::rcvtimeo, static_cast<int>(timeout.count()));
    socket.connect(endpoint_);
    zmq::message_t answer;
    if (!socket.send(zmq::buffer(request)) || !socket.recv(answer)) {
      return unreachable(endpoint_, std::string(op) + " got no answer within " +
                                        std::to_string(timeout.count()) + " ms");
    }
    return parse_answer(answer.to_string_view());
  } catch (const zmq::error_t& error) {
    return unreachable(endpoint_, error.what());
  }
}

}  // namespace atolldb
