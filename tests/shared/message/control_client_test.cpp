// A request in flight ends when the process that was asked ends (R64).
#include "shared/message/control_client.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "shared/base/unique_fd.h"
#include "shared/message/control_server.h"

namespace atolldb {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::hours kLong{1};
/// Maximum time for which a caller may wait after the process that it asked has ended.
constexpr std::chrono::seconds kPatience{1};

std::string tcp_endpoint() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  return "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

class ControlClientTest : public testing::TestWithParam<bool> {
 protected:
  ControlClientTest() {
    std::string pattern = "/tmp/atoll-client-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    endpoint_ = GetParam() ? tcp_endpoint() : "ipc://" + folder_ + "/server.sock";
  }
  ~ControlClientTest() override { std::filesystem::remove_all(folder_); }

  /// Starts a server that receives requests and answers none.
  std::unique_ptr<ControlServer> start() {
    auto server = ControlServer::start(endpoint_, [this](const ControlRequest&, ControlReply) {
      requests_.fetch_add(1, std::memory_order_relaxed);
    });
    EXPECT_TRUE(server) << server.error().message;
    return *std::move(server);
  }
  void await_requests(uint32_t count) const {
    while (requests_.load(std::memory_order_relaxed) < count) std::this_thread::yield();
  }
  static void expect_unknown(const Result<Json>& answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ExitCode::coordinator_unreachable);
    EXPECT_NE(answer.error().message.find("snapshot.take"), std::string::npos);
    EXPECT_NE(answer.error().message.find("whether the request was carried out is unknown"),
              std::string::npos)
        << answer.error().message;
  }

  std::string folder_;
  std::string endpoint_;
  std::atomic<uint32_t> requests_{0};
};

TEST_P(ControlClientTest, ARequestInFlightEndsWithItsServer) {
  auto server = start();
  Clock::time_point ended;
  std::thread stopper([&] {
    await_requests(1);
    ended = Clock::now();
    server.reset();
  });
  const auto answer = ControlClient(endpoint_).call(ControlOperation::snapshot_take, {}, kLong);
  const auto now = Clock::now();
  stopper.join();
  expect_unknown(answer);
  EXPECT_LT(now - ended, kPatience);
}

TEST_P(ControlClientTest, ARequestInFlightEndsWhenItsProcessIsKilled) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto server = ControlServer::start(endpoint_, [&](const ControlRequest&, ControlReply) {
      [[maybe_unused]] const ssize_t written = write(told[1], "r", 1);
    });
    [[maybe_unused]] const ssize_t written = write(told[1], "s", 1);
    for (;;) pause();
  }
  char letter = 0;
  ASSERT_EQ(read(told[0], &letter, 1), 1);
  Clock::time_point killed;
  std::thread killer([&] {
    char request = 0;
    EXPECT_EQ(read(told[0], &request, 1), 1);
    killed = Clock::now();
    kill(child, SIGKILL);
  });
  const auto answer = ControlClient(endpoint_).call(ControlOperation::snapshot_take, {}, kLong);
  const auto now = Clock::now();
  killer.join();
  waitpid(child, nullptr, 0);
  close(told[0]);
  close(told[1]);
  expect_unknown(answer);
  EXPECT_LT(now - killed, kPatience);
}

TEST_P(ControlClientTest, AServerThatIsStartedInItsPlaceIsNotAsked) {
  auto server = start();
  std::thread restarter([&] {
    await_requests(1);
    server.reset();
    server = start();
  });
  const auto answer = ControlClient(endpoint_).call(ControlOperation::snapshot_take, {}, kLong);
  restarter.join();
  expect_unknown(answer);
  // Anything that the first call might still send comes before this second call. The server must
  // receive exactly two requests.
  const auto other = ControlClient(endpoint_).call(ControlOperation::snapshot_take, {},
                                                   std::chrono::milliseconds(200));
  EXPECT_FALSE(other);
  EXPECT_EQ(requests_.load(std::memory_order_relaxed), 2u);
}

TEST_P(ControlClientTest, WithoutAListenerACallEndsSoon) {
  if (!GetParam()) {
    // Leaves a socket file without a listener, as a dead process does.
    const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (folder_ + "/server.sock").c_str());
    ASSERT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  const auto begin = Clock::now();
  const auto answer = ControlClient(endpoint_).call(ControlOperation::snapshot_take, {}, kLong);
  EXPECT_LT(Clock::now() - begin, 2 * kPatience);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ExitCode::coordinator_unreachable);
  EXPECT_NE(answer.error().message.find("no process accepts connections"), std::string::npos)
      << answer.error().message;
}

TEST_P(ControlClientTest, ACallerMayGiveUp) {
  const auto server = start();
  const auto answer =
      ControlClient(endpoint_).call(ControlOperation::snapshot_take, {}, kLong,
                                    [&] { return requests_.load(std::memory_order_relaxed) != 0; });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ExitCode::coordinator_unreachable);
}

INSTANTIATE_TEST_SUITE_P(Endpoints, ControlClientTest, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "tcp" : "ipc"; });

}  // namespace
}  // namespace atolldb
