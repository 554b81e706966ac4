#include "shared/message/control_client.h"

#include <sys/stat.h>

#include <algorithm>
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

/// How often a waiting caller looks whether it shall give up.
constexpr std::chrono::milliseconds kSlice{100};

/// ZeroMQ would wait for a socket file that is not there until the time-out.
bool is_missing(const std::string& endpoint) {
  constexpr std::string_view kIpc = "ipc://";
  if (!endpoint.starts_with(kIpc)) return false;
  struct stat info{};
  return stat(endpoint.c_str() + kIpc.size(), &info) != 0;
}

}  // namespace

Result<Json> ControlClient::call(std::string_view op, const Json& body,
                                 std::chrono::milliseconds timeout,
                                 const std::function<bool()>& gave_up) const {
  const std::string request = encode_request(op, body);
  if (request.size() > kMaxControlBytes) {
    return make_error(ExitCode::usage,
                      std::string(op) + ": the request has " + std::to_string(request.size()) +
                          " bytes, more than the limit of " + std::to_string(kMaxControlBytes) +
                          ": send less at a time");
  }
  if (is_missing(endpoint_)) return unreachable(endpoint_, "there is no such socket");
  try {
    zmq::socket_t socket(context_->zmq, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::sndtimeo, static_cast<int>(timeout.count()));
    socket.set(zmq::sockopt::rcvtimeo, static_cast<int>(std::min(kSlice, timeout).count()));
    socket.connect(endpoint_);
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    zmq::message_t answer;
    bool is_answered = false;
    if (socket.send(zmq::buffer(request))) {
      do {
        is_answered = socket.recv(answer).has_value();
      } while (!is_answered && std::chrono::steady_clock::now() < deadline &&
               !(gave_up && gave_up()));
    }
    if (!is_answered) {
      return unreachable(endpoint_, std::string(op) + " got no answer within " +
                                        std::to_string(timeout.count()) + " ms");
    }
    return parse_answer(answer.to_string_view());
  } catch (const zmq::error_t& error) {
    return unreachable(endpoint_, error.what());
  }
}

}  // namespace atolldb
