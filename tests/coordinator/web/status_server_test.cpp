// The HTTP server of the status page: methods, hosts, limits, and clients that are slow or wrong.
#include "coordinator/web/status_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/http_exchange.h"

namespace atolldb::test {
namespace {

class StatusServerTest : public ::testing::Test {
 protected:
  StatusServerTest() {
    auto server = StatusServer::start("127.0.0.1", 0, answer);
    EXPECT_TRUE(server) << server.error().message;
    if (server) server_ = *std::move(server);
  }

  /// Serves "/" and "/large".
  static HttpAnswer answer(std::string_view path, std::string_view query) {
    if (path == "/") {
      return {.body = std::make_shared<const std::string>("query: " + std::string(query))};
    }
    if (path == "/large") return {.body = std::make_shared<const std::string>(32 << 20, 'x')};
    return {.status = 404, .body = std::make_shared<const std::string>("no such page")};
  }
  int port() const { return server_->port(); }
  std::string get(const std::string& path) const { return request_of(port(), "GET", path); }

  std::unique_ptr<StatusServer> server_;
};

TEST_F(StatusServerTest, AnswersHaveTheirHeadersAndTheConnectionEnds) {
  const std::string answer = get("/?a=b");
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_EQ(body_of(answer), "query: a=b");
  for (const char* header :
       {"Cache-Control: no-store\r\n", "X-Content-Type-Options: nosniff\r\n",
        "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n",
        "Content-Type: text/plain; charset=utf-8\r\n", "Content-Length: 10\r\n",
        "Connection: close\r\n"}) {
    EXPECT_NE(answer.find(header), std::string::npos) << header << "is missing in\n" << answer;
  }
  EXPECT_EQ(server_->url(), "http://127.0.0.1:" + std::to_string(port()) + "/");
}

TEST_F(StatusServerTest, UnknownPathsAreNotFound) {
  for (const char* path : {"/other", "/large/", "/../etc/passwd", "/%2e%2e/etc/passwd"}) {
    const int status = status_of(get(path));
    EXPECT_TRUE(status == 404 || status == 400) << path << ": " << status;
  }
}

TEST_F(StatusServerTest, OnlyGetIsServed) {
  for (const char* method : {"HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    const std::string answer = request_of(port(), method, "/");
    EXPECT_EQ(status_of(answer), 405) << method << "\n" << answer;
    EXPECT_NE(answer.find("Allow: GET\r\n"), std::string::npos) << answer;
  }
  EXPECT_EQ(body_of(request_of(port(), "HEAD", "/")), "");
  const std::string with_body = http_exchange(
      port(), "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nbody");
  EXPECT_EQ(status_of(with_body), 405) << "the server does not wait for the body";
}

TEST_F(StatusServerTest, ARequestForAnotherHostIsRefused) {
  for (const char* host : {"evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1",
                           "[fe80::1]", "localhost.evil.example", ""}) {
    EXPECT_NE(status_of(request_of(port(), "GET", "/", host)), 200) << host;
  }
  EXPECT_EQ(status_of(request_of(port(), "GET", "/", "evil.example")), 403);
  for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1:80", "127.1.2.3", "[::1]:80"}) {
    EXPECT_EQ(status_of(request_of(port(), "GET", "/", host)), 200) << host;
  }
  EXPECT_EQ(status_of(http_exchange(port(), "GET / HTTP/1.0\r\n\r\n")), 200) << "no browser";
}

TEST_F(StatusServerTest, BeyondLoopbackEachNameOfTheMachineIsServed) {
  const auto server = StatusServer::start("0.0.0.0", 0, answer);
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_EQ(status_of(request_of((*server)->port(), "GET", "/", "db.example")), 200);
}

TEST(StatusHostTest, NamesOfThisMachineAreLoopbackAddressesAndLocalhost) {
  for (const char* host : {"localhost", "127.0.0.1", "127.255.0.1:9", "::1", "[::1]", "[::1]:9"}) {
    EXPECT_TRUE(is_loopback_host(host)) << host;
  }
  for (const char* host :
       {"", "[", "[]", ":", "0.0.0.0", "::", "[::2]", "128.0.0.1", "example.org", "localhost1"}) {
    EXPECT_FALSE(is_loopback_host(host)) << host;
  }
}

TEST_F(StatusServerTest, ALongUrlIsNotFoundAndATooLongOneIsRefused) {
  EXPECT_EQ(status_of(get("/" + std::string(StatusServer::kMaxRequestBytes / 2, 'a'))), 404);
  const std::string refused = get("/" + std::string(2 * StatusServer::kMaxRequestBytes, 'a'));
  EXPECT_NE(status_of(refused), 200);
  EXPECT_NE(status_of(refused), 404);
  EXPECT_EQ(status_of(get("/")), 200);
}

TEST_F(StatusServerTest, GarbageIsRefusedAndTheServerGoesOn) {
  for (const std::string& garbage :
       {std::string("\r\n\r\n"), std::string("GET\r\n\r\n"), std::string(100, '\0') + "\r\n\r\n",
        std::string("GET / HTTP/9.9\r\n\r\n"), std::string("\x16\x03\x01\x02\x00\x01\r\n\r\n")}) {
    EXPECT_NE(status_of(http_exchange(port(), garbage)), 200);
  }
  EXPECT_EQ(status_of(get("/")), 200);
}

TEST_F(StatusServerTest, ManyClientsAtTheSameTimeAreAllServed) {
  constexpr int kClients = 16;
  constexpr int kRequests = 25;
  std::atomic<int> served{0};
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&] {
      for (int i = 0; i < kRequests; ++i) {
        if (status_of(get("/")) == 200) served.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(served.load(std::memory_order_relaxed), kClients * kRequests);
}

TEST_F(StatusServerTest, HalfSentRequestsDoNotBlockOthersForever) {
  constexpr std::string_view kHalf = "GET / HTTP/1.1\r\nHost: local";
  std::vector<UniqueFd> halves;
  for (uint32_t i = 0; i < 2 * StatusServer::kThreads; ++i) {
    halves.push_back(connect_to_port(port()));
    ASSERT_TRUE(send_bytes(halves.back(), kHalf));
  }
  EXPECT_EQ(status_of(get("/")), 200);
}

TEST_F(StatusServerTest, ClientsThatReadNothingDoNotBlockOthersForever) {
  std::vector<UniqueFd> silent;
  for (uint32_t i = 0; i < StatusServer::kThreads; ++i) {
    silent.push_back(connect_to_port(port()));
    ASSERT_TRUE(send_bytes(silent.back(), "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  EXPECT_EQ(status_of(get("/")), 200);
}

TEST_F(StatusServerTest, ALargeAnswerArrivesWhole) {
  EXPECT_EQ(body_of(get("/large")).size(), size_t{32} << 20);
}

TEST_F(StatusServerTest, ATakenPortIsNamedWithItsKey) {
  const auto taken = static_cast<uint16_t>(port());
  const auto second = StatusServer::start("127.0.0.1", taken, answer);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ExitCode::resources);
  EXPECT_NE(second.error().message.find("status_page.port"), std::string::npos);
  EXPECT_NE(second.error().message.find(":" + std::to_string(taken)), std::string::npos);
}

TEST_F(StatusServerTest, AnAddressOfAnotherMachineIsNamedWithItsKey) {
  // 192.0.2.0/24 is reserved for documentation.
  const auto server = StatusServer::start("192.0.2.1", 0, answer);
  ASSERT_FALSE(server);
  EXPECT_NE(server.error().message.find("status_page.listen"), std::string::npos);
}

}  // namespace
}  // namespace atolldb::test
