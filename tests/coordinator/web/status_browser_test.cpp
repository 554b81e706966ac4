// The status page in a real browser: what it shows of a status with hostile names.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "coordinator/web/status_page.h"
#include "tests/cluster/browser.h"
#include "tests/support/eventually.h"
#include "tests/support/http_exchange.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;

/// Returns a status with markup in every text that it could come from.
Json hostile_status() {
  const std::string script = "</script><script>document.title = 'taken'</script>";
  const Json cache = {{"used_bytes", 4'096}, {"pages_read", 7}, {"evictions", 6}};
  return {
      {"name", "bank <i>of</i> " + script},
      {"state", "<u>running</u>"},
      {"healthy", false},
      {"problems", Json::array({{{"what", "<img src=x onerror=\"document.title='taken'\">"},
                                 {"what_to_do", script}}})},
      {"durability", "<s>durable</s>"},
      {"incarnation", 17},
      {"epochs", {{"current", 9}, {"durable", 7}, {"durability_lag_us", 12'345}}},
      {"nodes", Json::array({{{"node", 0},
                              {"state", "<u>up</u>"},
                              {"workers", 2},
                              {"pool", {{"total", 100}, {"free", 25}, {"page_bytes", 4'096}}}}})},
      {"storages", Json::array({{{"id", 1},
                                 {"name", "accounts <b>bold</b>"},
                                 {"type", "array"},
                                 {"state", script},
                                 {"snapshot_cache", cache}},
                                {{"id", 2}, {"name", "zebra"}, {"type", 5}}})},
      {"processes",
       Json::array(
           {{{"role", "<q>coordinator</q>"}, {"pid", 5}, {"metrics", "javascript:alert(1)//"}},
            {{"role", "node0"}, {"metrics", "127.0.0.1:9101"}}})}};
}

TEST(StatusBrowserTest, NamesWithMarkupAreShownAsText) {
  if (find_browser().empty())
    GTEST_SKIP() << "no browser: ops/setup --test brings it, or set ATOLL_BROWSER";
  std::atomic<uint64_t> calls{0};
  auto page = StatusPage::start(
      Config::StatusPage{},
      {.status = hostile_status,
       .counts =
           [&] {
             ClusterCounts counts;
             counts.time_ns = static_cast<uint64_t>(
                 std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
             counts.commits = 1'000 * calls.fetch_add(1, std::memory_order_relaxed);
             counts.pool_used_percent = {75};
             return counts;
           },
       .state = [] { return ClusterState::running; }});
  ASSERT_TRUE(page) << page.error().message;
  const std::string url = (*page)->url();
  const int port = std::stoi(url.substr(url.rfind(':') + 1));
  ASSERT_TRUE(eventually(
      [&] { return Json::parse(body_of(request_of(port, "GET", "/history.json")))["last"] >= 2; }));

  const TestFolder folder;
  const CliRunner runner(folder);
  const BrowsedPage shown = browse(runner, url);
  EXPECT_EQ(shown.console, "");
  for (const char* part :
       {"bank &lt;i&gt;of&lt;/i&gt; &lt;/script&gt;", "accounts &lt;b&gt;bold&lt;/b&gt;",
        "&lt;img src=x onerror=", "&lt;u&gt;running&lt;/u&gt;", "not healthy", "zebra", "75.0 %",
        "http://127.0.0.1:9101/metrics", "<path class=\"line\" d=\"M"}) {
    EXPECT_NE(shown.dom.find(part), std::string::npos) << part << " is missing in\n" << shown.dom;
  }
  for (const char* part : {"<b>bold</b>", "<i>of</i>", "<img", "<u>", "<q>", "href=\"javascript",
                           "<title>taken</title>"}) {
    EXPECT_EQ(shown.dom.find(part), std::string::npos) << part << " is in\n" << shown.dom;
  }
}

}  // namespace
}  // namespace atolldb::test
