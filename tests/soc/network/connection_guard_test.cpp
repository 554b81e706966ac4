// Tests of the limits of connections, with real connections over loopback.
#include "soc/network/connection_guard.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>
#include <vector>

#include "shared/base/check.h"

namespace atolldb {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kBegin = 100 * kSecond;
constexpr uint64_t kPatience =
    std::chrono::nanoseconds(ConnectionGuard::kMaxWithoutSession).count();

/// A port of loopback, and connections to it.
class Port {
 public:
  Port() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(address_);
    CHECK(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address_), bytes) == 0);
    CHECK(::listen(listener_.get(), 16) == 0);
    CHECK(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address_), &bytes) == 0);
  }
  uint16_t number() const { return ntohs(address_.sin_port); }
  int listener() const { return listener_.get(); }

  struct Pair {
    UniqueFd client;
    UniqueFd node;
  };
  Pair connect() const {
    Pair pair;
    pair.client = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CHECK(::connect(pair.client.get(), reinterpret_cast<const sockaddr*>(&address_),
                    sizeof(address_)) == 0);
    pair.node = UniqueFd(::accept(listener_.get(), nullptr, nullptr));
    CHECK(pair.node.is_open());
    return pair;
  }

 private:
  UniqueFd listener_;
  sockaddr_in address_{};
};

/// A guard, and a connection that has a session.
struct GuardedSession {
  Port port;
  ConnectionGuard guard{port.number()};
  Port::Pair pair = port.connect();

  GuardedSession() {
    guard.record_accepted(pair.node.get(), kBegin);
    guard.record_session(pair.node.get());
  }
};

/// Returns whether the other end has shut the connection down.
bool is_shut_down(const UniqueFd& socket) {
  pollfd item{socket.get(), POLLRDHUP, 0};
  return ::poll(&item, 1, 0) == 1 && (item.revents & (POLLRDHUP | POLLHUP)) != 0;
}

/// Sends bytes, and receives them at the node's end.
void transfer(const Port::Pair& pair, uint64_t bytes) {
  std::thread sender([&] {
    std::vector<char> data(64 * 1024);
    for (uint64_t left = bytes; left != 0;) {
      const auto sent = ::send(pair.client.get(), data.data(), std::min(left, data.size()), 0);
      CHECK(sent > 0);
      left -= static_cast<uint64_t>(sent);
    }
  });
  std::vector<char> data(64 * 1024);
  for (uint64_t left = bytes; left != 0;) {
    const auto got = ::recv(pair.node.get(), data.data(), std::min(left, data.size()), 0);
    CHECK(got > 0);
    left -= static_cast<uint64_t>(got);
  }
  sender.join();
}

TEST(ConnectionGuard, AConnectionWithoutASessionIsShutDownAfterTheLimit) {
  const Port port;
  ConnectionGuard guard(port.number());
  const auto with = port.connect();
  const auto without = port.connect();
  guard.record_accepted(with.node.get(), kBegin);
  guard.record_accepted(without.node.get(), kBegin);
  guard.record_session(with.node.get());
  guard.check(kBegin + kPatience);
  EXPECT_FALSE(is_shut_down(without.client)) << "it is within the limit";
  guard.check(kBegin + kPatience + 1);
  EXPECT_TRUE(is_shut_down(without.client));
  EXPECT_FALSE(is_shut_down(with.client));
  EXPECT_EQ(guard.refused(), 1u);
  // When its session ends, the connection has as long for the next one.
  const uint64_t later = kBegin + 100 * kSecond;
  guard.record_no_session(with.node.get(), later);
  guard.check(later + kPatience);
  EXPECT_FALSE(is_shut_down(with.client));
  guard.check(later + kPatience + 1);
  EXPECT_TRUE(is_shut_down(with.client));
  guard.record_ended(with.node.get());
  guard.record_ended(without.node.get());
  EXPECT_TRUE(guard.is_empty());
}

TEST(ConnectionGuard, BytesWithoutAWholeMessageAreLimited) {
  GuardedSession session;
  auto& [port, guard, pair] = session;
  transfer(pair, ConnectionGuard::kMaxUnfinishedBytes);
  guard.check(kBegin);
  EXPECT_FALSE(is_shut_down(pair.client)) << "it is within the limit";
  guard.record_message(pair.node.get());
  guard.check(kBegin);
  transfer(pair, ConnectionGuard::kMaxUnfinishedBytes);
  guard.check(kBegin);
  EXPECT_FALSE(is_shut_down(pair.client)) << "the message has ended the count before";
  transfer(pair, 1);
  guard.check(kBegin);
  EXPECT_TRUE(is_shut_down(pair.client));
  EXPECT_EQ(guard.refused(), 1u);
}

TEST(ConnectionGuard, HeartbeatsOfAMonthCloseNothingAndGiveNoCredit) {
  GuardedSession session;
  auto& [port, guard, pair] = session;
  constexpr uint64_t kHour = 3'600;
  uint64_t now = kBegin;
  uint64_t sent = 0;
  for (uint64_t hour = 0; hour < 30 * 24; ++hour) {
    now += kHour * kSecond;
    transfer(pair, kHour * ConnectionGuard::kHeartbeatBytesPerSecond);
    sent += kHour * ConnectionGuard::kHeartbeatBytesPerSecond;
    guard.check(now);
  }
  EXPECT_GT(sent, 4 * ConnectionGuard::kMaxUnfinishedBytes);
  EXPECT_FALSE(is_shut_down(pair.client));
  // A month without bytes adds nothing to the limit.
  now += 30 * 24 * kHour * kSecond;
  guard.check(now);
  transfer(pair, ConnectionGuard::kMaxUnfinishedBytes);
  guard.check(now);
  EXPECT_FALSE(is_shut_down(pair.client)) << "it is within the limit";
  transfer(pair, 1);
  guard.check(now);
  EXPECT_TRUE(is_shut_down(pair.client));
}

TEST(ConnectionGuard, WithoutADescriptorANewConnectionIsShutDownAndCounted) {
  const Port port;
  ConnectionGuard guard(port.number());
  const auto pair = port.connect();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<UniqueFd> all;
  for (;;) {
    UniqueFd fd(::dup(port.listener()));
    if (!fd.is_open()) break;
    all.push_back(std::move(fd));
  }
  EXPECT_EQ(errno, EMFILE);
  guard.record_accepted(pair.node.get(), kBegin);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(is_shut_down(pair.client));
  EXPECT_EQ(guard.refused(), 1u);
  EXPECT_EQ(guard.without_descriptor(), 1u);
  EXPECT_TRUE(guard.is_empty());
}

TEST(ConnectionGuard, BytesOfAllConnectionsAreLimited) {
  const Port port;
  ConnectionGuard guard(port.number());
  constexpr uint64_t kEach = ConnectionGuard::kMaxUnfinishedBytes;
  constexpr uint64_t kAtLimit = ConnectionGuard::kMaxUnfinishedBytesOfAll / kEach;
  std::vector<Port::Pair> pairs;
  for (uint64_t i = 0; i <= kAtLimit; ++i) {
    pairs.push_back(port.connect());
    guard.record_accepted(pairs.back().node.get(), kBegin);
    guard.record_session(pairs.back().node.get());
    if (i < kAtLimit) transfer(pairs.back(), kEach);
  }
  guard.check(kBegin);
  EXPECT_EQ(guard.refused(), 0u);
  transfer(pairs.back(), 1);
  guard.check(kBegin);
  EXPECT_EQ(guard.refused(), 1u);
  EXPECT_FALSE(is_shut_down(pairs.back().client)) << "it has sent the least";
}

TEST(ConnectionGuard, PastTheLimitOfConnectionsTheOldestWithoutASessionIsShutDown) {
  const Port port;
  ConnectionGuard guard(port.number());
  std::vector<Port::Pair> pairs;
  for (size_t i = 0; i < ConnectionGuard::kMaxConnections; ++i) {
    pairs.push_back(port.connect());
    guard.record_accepted(pairs.back().node.get(), kBegin + i);
    if (i != 3) guard.record_session(pairs.back().node.get());
  }
  EXPECT_EQ(guard.refused(), 0u);
  pairs.push_back(port.connect());
  guard.record_accepted(pairs.back().node.get(), kBegin + kSecond);
  EXPECT_TRUE(is_shut_down(pairs[3].client));
  EXPECT_FALSE(is_shut_down(pairs.back().client));
  guard.record_session(pairs.back().node.get());
  // All have sessions now, so the next one finds no place.
  pairs.push_back(port.connect());
  guard.record_accepted(pairs.back().node.get(), kBegin + kSecond);
  EXPECT_TRUE(is_shut_down(pairs.back().client));
  EXPECT_EQ(guard.refused(), 2u);
}

TEST(ConnectionGuard, ADescriptorOfAnotherFileIsLeftAlone) {
  const Port port;
  const Port other;
  ConnectionGuard guard(port.number());
  std::array<int, 2> pipes{};
  ASSERT_EQ(::pipe(pipes.data()), 0);
  const UniqueFd reader(pipes[0]);
  const UniqueFd writer(pipes[1]);
  const auto pair = other.connect();
  guard.record_accepted(reader.get(), kBegin);
  guard.record_accepted(pair.node.get(), kBegin);
  guard.record_accepted(1'000'000, kBegin);
  EXPECT_TRUE(guard.is_empty());
}

TEST(ConnectionGuard, AClosedConnectionIsNotMistakenForTheNextOne) {
  const Port port;
  ConnectionGuard guard(port.number());
  auto first = port.connect();
  const auto second = port.connect();
  const int fd = first.node.get();
  guard.record_accepted(fd, kBegin);
  first.node.reset();
  ASSERT_EQ(::fcntl(second.node.get(), F_DUPFD, fd), fd) << "the number is free now";
  const UniqueFd reused(fd);
  guard.shut_down(fd);
  EXPECT_TRUE(is_shut_down(first.client));
  EXPECT_FALSE(is_shut_down(second.client));
}

}  // namespace
}  // namespace atolldb
