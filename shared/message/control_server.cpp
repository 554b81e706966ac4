#include "shared/message/control_server.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "shared/base/check.h"
#include "shared/base/unique_fd.h"

namespace atolldb {

/// State shared by answering threads and the server's thread. It outlives the server for late
/// answers.
struct ControlServer::Shared {
  struct Answer {
    std::string peer;  // ZeroMQ's routing id of the client
    ControlFrames frames;
  };
  std::mutex mutex;
  std::vector<Answer> answers;  // guarded by mutex
  UniqueFd wake_fd;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> garbage{0};

  void wake() const {
    const uint64_t one = 1;
    // The write cannot fail: the 64-bit counter of an eventfd does not overflow in steps of one.
    const ssize_t written = write(wake_fd.get(), &one, sizeof(one));
    CHECK(written == sizeof(one));
  }
  void add(Answer answer) {
    CHECK(!answer.peer.empty());
    {
      const std::lock_guard guard(mutex);
      answers.push_back(std::move(answer));
    }
    wake();
  }
};

class ControlServer::Loop {
 public:
  Loop(std::shared_ptr<Shared> shared, ControlHandler handler)
      : shared_(std::move(shared)),
        handler_(std::move(handler)),
        socket_(context_, zmq::socket_type::router) {}

  void bind(const std::string& endpoint, size_t max_request_bytes) {
    // Maximum number of unserved requests of one connection. One would suffice for a client, which
    // waits for each answer.
    constexpr int kMostWaiting = 16;
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::maxmsgsize, static_cast<int64_t>(max_request_bytes));
    socket_.set(zmq::sockopt::rcvhwm, kMostWaiting);
    socket_.bind(endpoint);
  }
  void start() {
    CHECK(!thread_.joinable());
    thread_ = std::thread([this] { run(); });
  }
  void join() {
    CHECK(shared_->stop.load(std::memory_order_relaxed));  // without it the thread would not end
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    std::vector<zmq::pollitem_t> items = {{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                          {nullptr, shared_->wake_fd.get(), ZMQ_POLLIN, 0}};
    // Relaxed: the write and the read of the eventfd order all earlier accesses.
    while (!shared_->stop.load(std::memory_order_relaxed)) {
      try {
        zmq::poll(items, std::chrono::milliseconds(-1));
        if ((items[1].revents & ZMQ_POLLIN) != 0) send_answers();
        if ((items[0].revents & ZMQ_POLLIN) != 0) receive();
      } catch (const zmq::error_t& error) {
        if (error.num() != EINTR && error.num() != EHOSTUNREACH) throw;
      }
    }
    send_answers();
  }

  void send_answers() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(shared_->wake_fd.get(), &count, sizeof(count));
    std::vector<Shared::Answer> answers;
    {
      const std::lock_guard guard(shared_->mutex);
      answers.swap(shared_->answers);
    }
    for (const Shared::Answer& answer : answers) {
      // The send does not wait: a client that does not read loses only its own answers.
      if (!socket_.send(zmq::buffer(answer.peer),
                        zmq::send_flags::sndmore | zmq::send_flags::dontwait)) {
        continue;
      }
      const ControlFrames& frames = answer.frames;
      CHECK(!frames.json.empty() && frames.bytes() <= kMaxControlBytes);
      const auto json_flags = frames.binary ? zmq::send_flags::sndmore | zmq::send_flags::dontwait
                                            : zmq::send_flags::dontwait;
      // ZeroMQ accepts or drops all parts of a message together, so these results do not matter.
      [[maybe_unused]] auto sent = socket_.send(zmq::buffer(frames.json), json_flags);
      if (frames.binary)
        sent = socket_.send(zmq::buffer(*frames.binary), zmq::send_flags::dontwait);
    }
  }

  void receive() {
    // Frames of a request: {peer, JSON, binary part}. This copies no frame, because frames may be
    // long.
    std::array<zmq::message_t, 1 + kMaxControlParts> frames;
    size_t count = 0;
    do {
      zmq::message_t message;
      if (!socket_.recv(message, zmq::recv_flags::dontwait)) return;
      // A message with more frames is invalid. Frees each excess frame before it receives the next.
      if (count < frames.size()) frames[count] = std::move(message);
      ++count;
    } while (socket_.get(zmq::sockopt::rcvmore) != 0);
    // A REQ socket adds an empty frame after the peer's id. Its requests count as garbage.
    if (count < 2 || count > frames.size()) return count_garbage();
    CHECK(frames[0].size() != 0);  // ZeroMQ's routing id of the peer
    ControlPart binary;
    if (count == frames.size()) binary = std::span(frames[2].data<std::byte>(), frames[2].size());
    Result<ControlRequest> request = parse_request(frames[1].to_string_view(), binary);
    if (!request) return count_garbage();
    ControlReply reply = [shared = shared_, peer = frames[0].to_string()](Result<Json> answer) {
      shared->add({peer, encode_answer(answer)});
    };
    CHECK(request->body.is_object());
    handler_(*request, std::move(reply));
  }

  void count_garbage() { shared_->garbage.fetch_add(1, std::memory_order_relaxed); }

  std::shared_ptr<Shared> shared_;
  ControlHandler handler_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::thread thread_;
};

ControlServer::ControlServer(std::shared_ptr<Shared> shared, std::unique_ptr<Loop> loop)
    : shared_(std::move(shared)), loop_(std::move(loop)) {}

Result<std::unique_ptr<ControlServer>> ControlServer::start(const std::string& endpoint,
                                                            ControlHandler handler,
                                                            size_t max_request_bytes) {
  CHECK(handler != nullptr);
  CHECK(max_request_bytes != 0 && max_request_bytes <= kMaxControlBytes);
  auto shared = std::make_shared<Shared>();
  shared->wake_fd = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!shared->wake_fd.is_open()) {
    return make_error(ExitCode::resources,
                      endpoint + ": eventfd: " + std::strerror(errno) + ": raise `ulimit -n`");
  }
  try {
    auto loop = std::make_unique<Loop>(shared, std::move(handler));
    loop->bind(endpoint, max_request_bytes);
    constexpr std::string_view kIpc = "ipc://";
    if (endpoint.starts_with(kIpc)) chmod(endpoint.c_str() + kIpc.size(), 0700);
    loop->start();
    return std::unique_ptr<ControlServer>(new ControlServer(std::move(shared), std::move(loop)));
  } catch (const zmq::error_t& error) {
    return make_error(ExitCode::failed, endpoint + ": cannot be bound: " + error.what() +
                                            ": change control.endpoint or cluster.run_dir");
  }
}

ControlServer::~ControlServer() {
  CHECK(!shared_->stop.load(std::memory_order_relaxed));
  shared_->stop.store(true, std::memory_order_relaxed);
  shared_->wake();
  loop_->join();
}

uint64_t ControlServer::garbage_count() const {
  return shared_->garbage.load(std::memory_order_relaxed);
}

}  // namespace atolldb
