// Frames that a busy node does not read: a client paces a long input, and all clients together take
// a limited memory of the node.
#include <gtest/gtest.h>
#include <malloc.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "soc/network/gateway.h"
#include "tests/soc/network/gateway_fixture.h"
#include "tests/support/eventually.h"

namespace atolldb {
namespace {

/// Keeps the thread of the port busy during its lifetime.
class HeldPort {
 public:
  explicit HeldPort(NetworkGateway& gateway) {
    const auto begun = std::make_shared<std::promise<void>>();
    // The gateway's thread calls the reply.
    gateway.handle({ControlOperation::session_list, Json::object()},
                   [begun, may_end = may_end_->get_future().share()](const Result<Json>&) {
                     begun->set_value();
                     may_end.wait();
                   });
    begun->get_future().wait();
  }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;
  ~HeldPort() { may_end_->set_value(); }

 private:
  const std::shared_ptr<std::promise<void>> may_end_ = std::make_shared<std::promise<void>>();
};

/// A client without keys that sends as much as its connection takes.
class FloodingClient {
 public:
  explicit FloodingClient(const std::string& endpoint) {
    const int no_wait = 0;
    const int one_frame = 1;
    const int few_bytes = 64 << 10;
    zmq_setsockopt(dealer_, ZMQ_LINGER, &no_wait, sizeof(no_wait));
    zmq_setsockopt(dealer_, ZMQ_SNDHWM, &one_frame, sizeof(one_frame));
    zmq_setsockopt(dealer_, ZMQ_SNDBUF, &few_bytes, sizeof(few_bytes));
    EXPECT_EQ(zmq_connect(dealer_, ("tcp://" + endpoint).c_str()), 0);
    WireWriter writer;
    const auto hello = writer.hello("flood");
    EXPECT_GE(zmq_send(dealer_, hello.data(), hello.size(), 0), 0);
    std::array<char, 1000> welcome{};
    EXPECT_GT(zmq_recv(dealer_, welcome.data(), welcome.size(), 0), 0);
  }
  FloodingClient(const FloodingClient&) = delete;
  FloodingClient& operator=(const FloodingClient&) = delete;
  ~FloodingClient() {
    zmq_close(dealer_);
    zmq_ctx_term(context_);
  }

  /// Sends frames of the largest size, until none was taken for `quiet_ms`. Returns their number.
  size_t flood(long quiet_ms) {
    const std::vector<char> frame(kMaxWireFrameBytes);
    size_t count = 0;
    zmq_pollitem_t item{dealer_, 0, ZMQ_POLLOUT, 0};
    while (zmq_poll(&item, 1, quiet_ms) > 0) {
      if (zmq_send(dealer_, frame.data(), frame.size(), ZMQ_DONTWAIT) >= 0) ++count;
    }
    return count;
  }

 private:
  void* context_ = zmq_ctx_new();
  void* dealer_ = zmq_socket(context_, ZMQ_DEALER);
};

class UnreadFramesTest : public NetworkGatewayTest {};

TEST_F(UnreadFramesTest, AClientGivesALongInputToItsConnectionInAWindow) {
  ASSERT_TRUE(start());
  const auto connected = NetworkClient::connect(address());
  ASSERT_TRUE(connected) << connected.error().message;
  NetworkClient& client = **connected;
  constexpr size_t kWindow = NetworkLink::kUploadWindowBytes;
  const std::vector<std::byte> input(size_t{40} << 20);
  std::optional<HeldPort> held(std::in_place, *gateway_);
  const auto ticket = client.submit("any", input);
  ASSERT_TRUE(ticket);
  // The buffers of the connection are full, and so is the window.
  ASSERT_TRUE(test::eventually(
      [&] { return client.unsent_part_bytes() + 2 * kMaxWirePartBytes > kWindow; }));
  constexpr std::chrono::milliseconds kStep{1};
  for (int step = 0; step < 100; ++step) {
    EXPECT_FALSE(client.wait_for(*ticket, kStep));
    ASSERT_LE(client.unsent_part_bytes(), kWindow);
  }
  held.reset();
  std::optional<SessionReply> reply;
  while (!reply) {
    ASSERT_LE(client.unsent_part_bytes(), kWindow);
    reply = client.wait_for(*ticket, kStep);
  }
  EXPECT_EQ(reply->status, Status::recovering) << "nothing runs here: " << reply->message;
  EXPECT_GT(get(metrics_.bytes_in), input.size());
  EXPECT_TRUE(test::eventually([&] { return client.unsent_part_bytes() == 0; }));
}

TEST_F(UnreadFramesTest, ABusyNodeKeepsFewFramesOfEachClient) {
  if (mallinfo2().uordblks == 0) GTEST_SKIP() << "malloc is not that of glibc";
  ASSERT_TRUE(start(false));
  constexpr size_t kClients = 16;
  std::vector<std::unique_ptr<FloodingClient>> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<FloodingClient>(gateway_->endpoint()));
  }
  ASSERT_TRUE(test::eventually([&] {
    return get(metrics_.unread_limit_bytes) == kClients * NetworkGateway::kMaxUnreadBytes;
  }));
  const auto used = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  std::optional<HeldPort> held(std::in_place, *gateway_);
  const size_t before = used();
  const auto grown = [&] { return std::max(used(), before) - before; };
  size_t sent = 0;
  const auto flood = [&](long quiet_ms) {
    for (const auto& client : clients) sent += client->flood(quiet_ms);
  };
  EXPECT_TRUE(test::eventually([&] {
    flood(1);
    return grown() >= kClients * NetworkGateway::kMaxUnreadBytes;
  })) << "the node kept less: "
      << grown();
  flood(200);
  // The clients, which are in this process, hold up to three frames each.
  constexpr size_t kOthers = kClients * 3 * kMaxWireFrameBytes;
  EXPECT_LE(grown(), kClients * NetworkGateway::kMaxUnreadBytes + kOthers + (size_t{8} << 20));
  held.reset();
  // No frame is lost: each of them is refused, because it is none of the protocol.
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.malformed) == sent; }))
      << get(metrics_.malformed) << " of " << sent;
  clients.clear();
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.unread_limit_bytes) == 0; }));
}

}  // namespace
}  // namespace atolldb
