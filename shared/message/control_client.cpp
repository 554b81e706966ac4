#include "shared/message/control_client.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "shared/base/path_errors.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Interval at which a waiting caller polls `gave_up`.
constexpr std::chrono::milliseconds kSlice{100};
/// A process that has its socket file, or is about to create it, accepts connections within this
/// time.
constexpr std::chrono::milliseconds kConnectPatience{1'000};

/// One context for all calls of a process, because a context has a thread of its own. It is never
/// destroyed, because calls may be in progress when the program ends. A forked child gets its own
/// context.
zmq::context_t& shared_context() {
  static std::mutex mutex;
  static pid_t owner = 0;
  static zmq::context_t* context = nullptr;
  const std::lock_guard guard(mutex);
  if (owner != getpid()) {
    context = new zmq::context_t;
    owner = getpid();
  }
  CHECK(context != nullptr);
  return *context;
}

std::string next_event_name() {
  static std::atomic<uint64_t> calls{0};
  return "inproc://control-events-" + std::to_string(calls.fetch_add(1, std::memory_order_relaxed));
}

/// Result of waiting for an answer.
enum class CallEnd {
  answered,
  timed_out,
  gave_up,    // `gave_up` returned true
  refused,    // no process has accepted the connection
  broken_off  // the accepting process has ended, perhaps after it got the request
};

/// One connection: sends a request, and detects the answer or the end of the other process (R64).
class ControlConnection {
 public:
  /// Throws zmq::error_t, as all functions of this class do.
  explicit ControlConnection(const std::string& endpoint);
  ~ControlConnection();
  ControlConnection(const ControlConnection&) = delete;
  ControlConnection& operator=(const ControlConnection&) = delete;

  /// Called once per connection. Polls `gave_up`, if set, during the wait.
  CallEnd call(const ControlFrames& request, std::chrono::milliseconds timeout,
               const std::function<bool()>& gave_up);
  /// REQUIRES: `call` returned `answered`.
  Result<Json> answer() const;

 private:
  void read_events();
  bool send(const ControlFrames& request);
  bool take_answer();

  zmq::socket_t socket_;
  zmq::socket_t events_;                                 // events of socket_
  std::array<zmq::message_t, kMaxControlParts> answer_;  // the JSON part, and the binary part
  size_t answer_frames_ = 0;
  bool is_sent_ = false;
  bool is_connected_ = false;
  bool is_refused_ = false;
  bool is_broken_ = false;
};

ControlConnection::ControlConnection(const std::string& endpoint)
    : socket_(shared_context(), zmq::socket_type::dealer),
      events_(shared_context(), zmq::socket_type::pair) {
  socket_.set(zmq::sockopt::linger, 0);
  events_.set(zmq::sockopt::linger, 0);
  const std::string name = next_event_name();
  const int wanted =
      ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED;
  if (zmq_socket_monitor(socket_.handle(), name.c_str(), wanted) != 0) throw zmq::error_t();
  events_.connect(name);
  socket_.connect(endpoint);
}

/// Ends the monitor before events_ closes, because events_ reads the monitor's events. If nothing
/// read them, a ZeroMQ thread would wait forever and block all calls of the process.
ControlConnection::~ControlConnection() { zmq_socket_monitor(socket_.handle(), nullptr, 0); }

/// Queues the request at once. ZeroMQ sends it when there is a connection.
bool ControlConnection::send(const ControlFrames& request) {
  CHECK(!is_sent_);  // a request is never sent again (R64)
  CHECK(request.bytes() <= kMaxControlBytes);
  is_sent_ = true;
  const auto last = zmq::send_flags::dontwait;
  const auto more = zmq::send_flags::dontwait | zmq::send_flags::sndmore;
  if (!socket_.send(zmq::buffer(request.json), request.binary ? more : last)) return false;
  return !request.binary || socket_.send(zmq::buffer(*request.binary), last).has_value();
}

CallEnd ControlConnection::call(const ControlFrames& request, std::chrono::milliseconds timeout,
                                const std::function<bool()>& gave_up) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  if (!send(request)) return CallEnd::timed_out;
  std::vector<zmq::pollitem_t> items = {{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                        {events_.handle(), 0, ZMQ_POLLIN, 0}};
  for (;;) {
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    if (waited >= timeout) return CallEnd::timed_out;
    if (gave_up && gave_up()) return CallEnd::gave_up;
    zmq::poll(items, std::min(kSlice, timeout - waited));
    if ((items[1].revents & ZMQ_POLLIN) != 0) read_events();
    // Takes the answer after the events. A process sends its answer before it closes the
    // connection. So if the events show the end of the connection, the answer is here.
    if (take_answer()) return CallEnd::answered;
    // Does not wait until ZeroMQ reconnects. The new connection would reach another process, which
    // replaces the first one and does not have the request.
    if (is_broken_) return CallEnd::broken_off;
    if (is_refused_ && Clock::now() - begin >= std::min(kConnectPatience, timeout)) {
      return CallEnd::refused;
    }
  }
}

/// Reads the events of the connection. Each has two frames: number and value, then the endpoint.
void ControlConnection::read_events() {
  zmq::message_t event;
  zmq::message_t endpoint;
  while (events_.recv(event, zmq::recv_flags::dontwait)) {
    if (event.more() && !events_.recv(endpoint, zmq::recv_flags::none)) return;
    uint16_t number = 0;
    if (event.size() < sizeof number) continue;
    std::memcpy(&number, event.data(), sizeof number);
    if (number == ZMQ_EVENT_CONNECTED) {
      is_connected_ = true;
      is_refused_ = false;
    } else if (is_connected_) {
      is_broken_ = true;
    } else if (number == ZMQ_EVENT_CONNECT_RETRIED) {
      is_refused_ = true;
    }
  }
  CHECK(!is_broken_ || is_connected_);
  CHECK(!is_refused_ || !is_connected_);
}

bool ControlConnection::take_answer() {
  CHECK(answer_frames_ == 0);
  zmq::message_t frame;
  if (!socket_.recv(frame, zmq::recv_flags::dontwait)) return false;
  // ZeroMQ delivers the parts of a message together.
  for (;;) {
    const bool has_more = frame.more();
    if (answer_frames_ < answer_.size()) answer_[answer_frames_] = std::move(frame);
    ++answer_frames_;
    if (!has_more || !socket_.recv(frame, zmq::recv_flags::none)) return true;
  }
}

Result<Json> ControlConnection::answer() const {
  CHECK(is_sent_ && answer_frames_ != 0);
  if (answer_frames_ > answer_.size()) {
    return make_error(ExitCode::failed,
                      "control message: its answer has " + std::to_string(answer_frames_) +
                          " parts, more than the limit of " + std::to_string(answer_.size()));
  }
  ControlPart binary;
  if (answer_frames_ == kMaxControlParts)
    binary = std::span(answer_[1].data<std::byte>(), answer_[1].size());
  return parse_answer(answer_[0].to_string_view(), binary);
}

constexpr const char* kAskStatus = "`atoll status` tells whether the cluster runs";

std::unexpected<Error> unreachable(const std::string& endpoint, const std::string& why,
                                   const std::string& what_to_do = kAskStatus) {
  return make_error(ExitCode::coordinator_unreachable, endpoint + ": " + why + ": " + what_to_do);
}

/// Checks the socket file before connecting, for two reasons. ZeroMQ would wait for a missing file
/// until the timeout. It also does not tell which user listens, so this checks the owners of the
/// file and its parents.
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

ControlClient::ControlClient(std::string endpoint) : endpoint_(std::move(endpoint)) {}

Result<Json> ControlClient::call_by_name(std::string_view op, const Json& body,
                                         std::chrono::milliseconds timeout,
                                         const std::function<bool()>& gave_up) const {
  const ControlFrames request = encode_request(op, body);
  const size_t limit = control_limits(op).bytes;
  if (request.bytes() > limit) return too_long(op, request.bytes(), limit);
  ATOLL_TRY(check_socket(endpoint_));
  const std::string name(op);
  const std::string took = std::to_string(timeout.count()) + " ms";
  try {
    ControlConnection connection(endpoint_);
    switch (connection.call(request, timeout, gave_up)) {
      case CallEnd::answered:
        return connection.answer();
      case CallEnd::refused:
        return unreachable(endpoint_, name + ": no process accepts connections");
      case CallEnd::broken_off:
        return unreachable(endpoint_,
                           name +
                               ": the process ended before it answered: whether the request was "
                               "carried out is unknown",
                           "check before you repeat it, " + std::string(kAskStatus));
      case CallEnd::gave_up:
        return unreachable(endpoint_, name + ": cancelled, because the cluster stops");
      case CallEnd::timed_out:
        break;
    }
    return unreachable(endpoint_, name + " got no answer within " + took);
  } catch (const zmq::error_t& error) {
    return unreachable(endpoint_, name + ": " + error.what());
  }
}

}  // namespace atolldb
