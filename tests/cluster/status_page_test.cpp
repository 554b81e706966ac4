// The status page of a cluster of real processes: its URL, its data, its config and a browser.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "shared/client/session_client.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/browser.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/metrics_http.h"
#include "tests/support/http_exchange.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;

class StatusPageClusterTest : public ::testing::Test {
 protected:
  StatusPageClusterTest() : runner_(folder_) {}

  std::string run_dir(const std::string& cluster) const {
    return folder_.path() + "/atoll/" + cluster;
  }
  /// Returns the URL in endpoints.json, or "".
  std::string url_of(const std::string& cluster) const {
    const Json endpoints =
        Json::parse(read_text(run_dir(cluster) + "/endpoints.json"), nullptr, false);
    return endpoints.is_object() ? endpoints.value("status_page", "") : "";
  }
  static int port_in(const std::string& url) { return std::stoi(url.substr(url.rfind(':') + 1)); }
  static Json json_of(int port, const std::string& path) {
    return Json::parse(body_of(request_of(port, "GET", path)), nullptr, false);
  }

  TestFolder folder_;
  CliRunner runner_;
};

/// Puts records into the storage "people.b-1" through a session until `ends`.
void put_until(const std::string& run_dir, const std::atomic<bool>& ends) {
  auto session = SessionClient::connect(run_dir, 0);
  ASSERT_TRUE(session) << session.error().message;
  for (uint64_t number = 0; !ends.load(std::memory_order_relaxed); ++number) {
    const std::string key = "key" + std::to_string(number % 1'000);
    KvRequest request;
    request.put("people.b-1", kv_bytes(key), kv_bytes("value"));
    const SessionReply reply = (*session)->call("kv.txn", request.bytes());
    ASSERT_EQ(reply.status, Status::ok);
  }
}

TEST_F(StatusPageClusterTest, ShowsALoadedCluster) {
  const std::string file =
      runner_.config("shown", "[durability]\nmode = \"durable\"\nlog_file_size = \"1MiB\"");
  CliCluster cluster(runner_, file);
  const std::string url = url_of("shown");
  ASSERT_TRUE(url.starts_with("http://127.0.0.1:")) << url;
  const int port = port_in(url);
  EXPECT_NE(cluster.up().out.find("status page    " + url + "\n"), std::string::npos)
      << cluster.up().out;
  const Ran text = runner_.atoll({"status", "-c", file});
  EXPECT_NE(text.out.find("  status page    " + url + "\n"), std::string::npos) << text.out;
  ASSERT_EQ(runner_.atoll({"storage", "create", "people.b-1", "--type", "mastertree"}).code, 0);

  std::atomic<bool> ends{false};
  std::thread load([&] { put_until(run_dir("shown"), ends); });
  EXPECT_TRUE(eventually([&] {
    const Json history = json_of(port, "/history.json");
    double most = 0;
    for (const Json& rate : history["transactions_per_s"])
      most = std::max(most, rate.get<double>());
    return most > 0;
  }));
  const Json shown = json_of(port, "/status.json");
  EXPECT_EQ(shown["name"], "shown");
  EXPECT_EQ(shown["state"], "running");
  EXPECT_EQ(shown["healthy"], true) << shown["problems"];
  EXPECT_EQ(shown["status_page"], url);
  EXPECT_EQ(shown["storages"][0]["name"], "people.b-1");
  EXPECT_GT(shown["nodes"][0]["commits"], 0);
  EXPECT_FALSE(shown["acknowledgement"]["stages"].empty());
  EXPECT_EQ(status_of(request_of(port, "GET", "/readyz")), 200);
  EXPECT_EQ(body_of(request_of(port, "GET", "/healthz")), "ok\n");
  EXPECT_TRUE(body_of(request_of(port, "GET", "/")).starts_with("<!DOCTYPE html>"));

  // The page's requests do not shorten the time over which `atoll status` measures.
  std::thread poll([&] {
    while (!ends.load(std::memory_order_relaxed)) request_of(port, "GET", "/status.json");
  });
  EXPECT_GT(cluster.status()["throughput_seconds"], 0.2);
  ends.store(true, std::memory_order_relaxed);
  poll.join();
  load.join();

  const Json mine = json_of(port, "/status.json");
  const Json status = cluster.status();
  EXPECT_EQ(status["status_page"], url);
  for (const auto& [member, value] : mine.items()) {
    EXPECT_TRUE(status.contains(member)) << member;
  }
  EXPECT_EQ(cluster.down().code, 0);
  EXPECT_EQ(request_of(port, "GET", "/healthz"), "") << "the page ends with the cluster";
}

TEST_F(StatusPageClusterTest, ABrowserShowsTheCluster) {
  if (find_browser().empty())
    GTEST_SKIP() << "no browser: ops/setup --test brings it, or set ATOLL_BROWSER";
  CliCluster cluster(runner_, runner_.config("browsed"));
  ASSERT_EQ(runner_.atoll({"storage", "create", "people.b-1", "--type", "mastertree"}).code, 0);
  const std::string url = url_of("browsed");
  ASSERT_FALSE(url.empty());
  ASSERT_TRUE(eventually([&] { return json_of(port_in(url), "/history.json")["last"] >= 2; }));
  const BrowsedPage page = browse(runner_, url);
  EXPECT_EQ(page.console, "");
  for (const char* part : {"<h1 id=\"name\">browsed</h1>", "<title>browsed - Atoll</title>",
                           "people.b-1", "healthy", "<path class=\"line\" d=\"M", "node1"}) {
    EXPECT_NE(page.dom.find(part), std::string::npos) << part << " is missing in\n" << page.dom;
  }
}

TEST_F(StatusPageClusterTest, APortThatTheUserHasChosenIsUsedOrNamedIfItIsTaken) {
  const std::string port = std::to_string(free_port());
  const std::string section = "[status_page]\nport = " + port;
  CliCluster first(runner_, runner_.config("first", section));
  EXPECT_EQ(url_of("first"), "http://127.0.0.1:" + port + "/");
  const Ran second = runner_.atoll({"up", "-c", runner_.config("second", section)});
  EXPECT_EQ(second.code, 6) << second.error;
  EXPECT_NE(second.error.find("status_page.port: cannot listen on 127.0.0.1:" + port),
            std::string::npos)
      << second.error;
  EXPECT_TRUE(processes_of("second").empty());
}

TEST_F(StatusPageClusterTest, APortOfTheMetricsIsAConfigError) {
  const Ran up = runner_.atoll(
      {"up", "-c",
       runner_.config("clash", "[metrics]\nbase_port = 29481\n[status_page]\nport = 29483")});
  EXPECT_EQ(up.code, 78) << up.error;
  EXPECT_NE(up.error.find("status_page.port: expected a port outside of those of the metrics"),
            std::string::npos)
      << up.error;
}

TEST_F(StatusPageClusterTest, CanBeSwitchedOff) {
  CliCluster cluster(runner_, runner_.config("dark", "[status_page]\nenabled = false"));
  EXPECT_EQ(cluster.up().out.find("status page"), std::string::npos) << cluster.up().out;
  EXPECT_EQ(url_of("dark"), "");
  EXPECT_TRUE(cluster.status()["status_page"].is_null());
}

}  // namespace
}  // namespace atolldb::test
