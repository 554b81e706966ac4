// The paths of the status page, the status that clients share, and the page itself.
#include "coordinator/web/status_page.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/eventually.h"
#include "tests/support/http_exchange.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;

class StatusPageTest : public ::testing::Test {
 protected:
  StatusPageTest() {
    auto page = StatusPage::start(
        Config::StatusPage{}, {.status =
                                   [this] {
                                     computed_.fetch_add(1, std::memory_order_relaxed);
                                     return Json{{"name", "shown \xff"}};
                                   },
                               .counts = [this] { return counts(); },
                               .state = [this] { return state_.load(std::memory_order_relaxed); }});
    EXPECT_TRUE(page) << page.error().message;
    if (page) page_ = *std::move(page);
  }

  /// Returns counts with 1,000 more commits at each call.
  ClusterCounts counts() {
    ClusterCounts counts;
    counts.time_ns = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                           std::chrono::nanoseconds(1));
    counts.commits = 1'000 * calls_.fetch_add(1, std::memory_order_relaxed);
    counts.pool_used_percent = {50};
    return counts;
  }
  int port() const {
    const std::string url = page_->url();
    return std::stoi(url.substr(url.rfind(':') + 1));
  }
  std::string get(const std::string& path) const { return request_of(port(), "GET", path); }

  std::atomic<uint64_t> computed_{0};
  std::atomic<uint64_t> calls_{0};
  std::atomic<ClusterState> state_{ClusterState::running};
  std::unique_ptr<StatusPage> page_;  // destroyed first: it calls the members above
};

TEST_F(StatusPageTest, ServesTheStatusAlsoIfATextIsNoUtf8) {
  const std::string answer = get("/status.json");
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_NE(answer.find("Content-Type: application/json\r\n"), std::string::npos) << answer;
  EXPECT_EQ(Json::parse(body_of(answer))["name"], "shown \xef\xbf\xbd");
}

TEST_F(StatusPageTest, ClientsShareAStatusForAWhile) {
  constexpr int kClients = 8;
  constexpr int kRequests = 50;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&] {
      for (int i = 0; i < kRequests; ++i) EXPECT_EQ(status_of(get("/status.json")), 200);
    });
  }
  for (std::thread& client : clients) client.join();
  const auto took = std::chrono::steady_clock::now() - begin;
  const auto most = static_cast<uint64_t>(took / StatusPage::kMaxAge + 1);
  EXPECT_LE(computed_.load(std::memory_order_relaxed), most);
}

TEST_F(StatusPageTest, ServesTheHistoryThatItsThreadSamples) {
  Json history;
  ASSERT_TRUE(eventually([&] {
    history = Json::parse(body_of(get("/history.json")));
    return history["last"] >= 2;
  }));
  for (const Json& rate : history["transactions_per_s"]) EXPECT_GT(rate, 0.0);
  EXPECT_EQ(history["pool_used_percent"].size(), 1u);
  const Json rest = Json::parse(body_of(get("/history.json?since=1")));
  EXPECT_EQ(rest["time_ms"].size(), rest["last"].get<size_t>() - 1);
  for (const char* query : {"?since=", "?since=-1", "?since=1x", "?other=1", "?since=0"}) {
    const Json all = Json::parse(body_of(get("/history.json" + std::string(query))));
    EXPECT_EQ(all["time_ms"].size(), all["last"].get<size_t>()) << query;
  }
}

TEST_F(StatusPageTest, IsReadyWhileTheClusterRuns) {
  EXPECT_EQ(body_of(get("/healthz")), "ok\n");
  EXPECT_EQ(status_of(get("/readyz")), 200);
  state_.store(ClusterState::recovering, std::memory_order_relaxed);
  EXPECT_EQ(status_of(get("/healthz")), 200);
  const std::string answer = get("/readyz");
  EXPECT_EQ(status_of(answer), 503);
  EXPECT_EQ(body_of(answer), "recovering\n");
  EXPECT_EQ(status_of(get("/unknown")), 404);
}

TEST_F(StatusPageTest, ThePageHasANonceOfItsOwnInEachAnswer) {
  const auto nonce_of = [](const std::string& answer) {
    const std::string before = "script-src 'nonce-";
    const size_t at = answer.find(before) + before.size();
    return answer.substr(at, answer.find('\'', at) - at);
  };
  const std::string first = get("/");
  const std::string second = get("/");
  EXPECT_EQ(status_of(first), 200);
  EXPECT_EQ(nonce_of(first).size(), 32u) << first;
  EXPECT_NE(nonce_of(first), nonce_of(second));
  EXPECT_NE(first.find("<script nonce=\"" + nonce_of(first) + "\">"), std::string::npos);
  EXPECT_EQ(body_of(first).find("NONCE"), std::string::npos);
  EXPECT_NE(first.find("Content-Type: text/html; charset=utf-8\r\n"), std::string::npos);
}

TEST(StatusPageHtmlTest, LoadsNothingAndWritesNoMarkup) {
  const std::string html(status_page_html());
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
  for (const char* word : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                           "eval(", " src=", "@import", "url(", "style=\""}) {
    EXPECT_EQ(html.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace atolldb::test
