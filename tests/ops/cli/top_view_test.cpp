// The figures and the screen of `atoll top`, from two samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "ops/top/figures.h"
#include "ops/top/view.h"
#include "shared/memory/histogram.h"

namespace atolldb::top {
namespace {

using Words = std::vector<std::string>;

constexpr std::array<uint64_t, 3> kBounds = {1'000, 10'000, 100'000};

Json latencies(std::array<uint64_t, 4> counts) { return {{"counts", counts}, {"sum_ns", 0}}; }

Json called(const std::string& name, uint64_t ok, uint64_t conflicts,
            std::array<uint64_t, 4> execution) {
  return {{"name", name},
          {"results", {{"ok", ok}, {"race_abort", conflicts}}},
          {"retries", conflicts},
          {"execution", latencies(execution)},
          {"durable", latencies({0, 0, ok, 0})}};
}

Json calls(const std::vector<Json>& procedures) {
  return {{"bounds_ns", kBounds}, {"procedures", procedures}};
}

Json acknowledgement(uint32_t bucket, uint64_t count) {
  Json buckets = Json::array();
  if (count != 0) buckets.push_back({bucket, count});
  return {{"stages", Json::array({{{"stage", "total"}, {"buckets", buckets}}})},
          {"slowest_epoch", nullptr}};
}

Json status_with(uint64_t commits, uint64_t read_only, uint64_t aborts, uint64_t log_bytes) {
  const Json logger = {
      {"logger", 0}, {"written_bytes", log_bytes}, {"batches", commits / 100}, {"epoch_lag", 2}};
  const Json node = {
      {"node", 0},
      {"state", "running"},
      {"commits", commits},
      {"read_only_commits", read_only},
      {"aborts", {{"race_abort", aborts}}},
      {"local_accesses", commits * 3},
      {"remote_accesses", commits},
      {"loggers", Json::array({logger})},
      {"snapshot_cache", {{"bytes", 4096}, {"reads", commits}, {"misses", 10}}},
      {"sessions",
       {{"open", 3}, {"requests", commits}, {"refused", 0}, {"payload_bytes", 3u << 20}}},
      {"pool", {{"total", 1'000}, {"free", 750}, {"page_bytes", 4096}}}};
  return {
      {"name", "bank"},
      {"uuid", "1"},
      {"incarnation", 1},
      {"state", "running"},
      {"durability", "durable"},
      {"epochs", {{"current", 9}, {"durable", 8}, {"durability_lag_us", 1'500}}},
      {"nodes", Json::array({node})},
      {"snapshots", {{"newest", 7}, {"epoch", 5'000}, {"run", {{"phase", "gleaning"}}}}},
      {"acknowledgement", acknowledgement(HistogramBuckets::of(2'000'000), commits == 0 ? 0 : 100)},
      {"storages",
       Json::array({{{"id", 1},
                     {"name", "accounts"},
                     {"type", "array"},
                     {"operations", commits},
                     {"snapshot_cache", {{"used_bytes", 8192}, {"pages_read", commits / 2}}}},
                    {{"id", 2},
                     {"name", "cold"},
                     {"type", "array"},
                     {"operations", commits / 10},
                     {"snapshot_cache", {{"used_bytes", 4096}, {"pages_read", commits}}}}})}};
}

Sample sample_at(uint64_t seconds, Json status, std::vector<Json> of_nodes) {
  Sample sample;
  sample.time_ns = seconds * 1'000'000'000;
  sample.status = std::move(status);
  sample.calls = std::move(of_nodes);
  return sample;
}

/// Two samples, two seconds apart.
Figures busy_figures() {
  Sample before =
      sample_at(10, status_with(0, 0, 0, 0), {calls({called("pay", 100, 0, {100, 0, 0, 0})})});
  Sample after = sample_at(
      12, status_with(2'000, 400, 24, 2 << 20),
      {calls({called("pay", 1'100, 10, {600, 510, 0, 0}), called("audit", 4, 0, {0, 0, 0, 4})})});
  before.sessions = {Json::array({{{"session", 4}, {"answered", 100}, {"in_flight", 1}}})};
  after.sessions = {Json::array({{{"session", 4}, {"answered", 300}, {"in_flight", 2}},
                                 {{"session", 5}, {"answered", 9'000}, {"in_flight", 0}}})};
  return figures_between(before, after);
}

std::string text_of(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) text += line.text + "\n";
  return text;
}

bool has_part(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TopFiguresTest, RatesAreTheDifferencesOfTwoSamplesOverTheirTime) {
  const Figures figures = busy_figures();
  ASSERT_TRUE(figures.is_recent);
  EXPECT_DOUBLE_EQ(figures.seconds, 2);
  EXPECT_DOUBLE_EQ(figures.write_commits_per_s, 1'000);
  EXPECT_DOUBLE_EQ(figures.read_only_commits_per_s, 200);
  EXPECT_DOUBLE_EQ(figures.all_aborts_per_s(), 12);
  EXPECT_DOUBLE_EQ(figures.log_bytes_per_s, 1 << 20);
  EXPECT_DOUBLE_EQ(figures.requests_per_s, 1'000);
  EXPECT_DOUBLE_EQ(figures.pool_used_percent, 25);
  EXPECT_DOUBLE_EQ(figures.cache_hit_percent, 100) << "no miss between the samples";
  ASSERT_TRUE(figures.epochs);
  EXPECT_NEAR(figures.epochs->p99_us, 2'000, 2'000.0 / 32);
  ASSERT_EQ(figures.node_rows.size(), 1u);
  EXPECT_DOUBLE_EQ(figures.node_rows[0].remote_percent, 25);
  ASSERT_EQ(figures.storage_rows.size(), 2u);
  EXPECT_DOUBLE_EQ(figures.storage_rows[0].operations_per_s, 1'000);
  EXPECT_DOUBLE_EQ(figures.storage_rows[0].pages_read_per_s, 500);
  ASSERT_EQ(figures.session_rows.size(), 2u);
  EXPECT_DOUBLE_EQ(figures.session_rows[0].answered_per_s, 100);
  EXPECT_DOUBLE_EQ(figures.session_rows[1].answered_per_s, 0) << "it is new";
}

TEST(TopFiguresTest, AProcedureHasTheCallsAndLatenciesBetweenTheSamples) {
  const Figures figures = busy_figures();
  ASSERT_EQ(figures.procedure_rows.size(), 2u);
  const ProcedureFigures& audit = figures.procedure_rows[0];
  EXPECT_EQ(audit.name, "audit") << "called for the first time";
  EXPECT_DOUBLE_EQ(audit.commits_per_s, 2);
  EXPECT_DOUBLE_EQ(audit.execution.p50_us, 100) << "beyond the last limit: that limit";
  const ProcedureFigures& pay = figures.procedure_rows[1];
  EXPECT_DOUBLE_EQ(pay.commits_per_s, 500);
  EXPECT_DOUBLE_EQ(pay.aborts_per_s, 5);
  EXPECT_DOUBLE_EQ(pay.retries_per_s, 5);
  EXPECT_EQ(pay.abort_reason, "race_abort");
  EXPECT_EQ(pay.execution.count, 1'010u);
  EXPECT_GT(pay.execution.p50_us, 1);
  EXPECT_LE(pay.execution.p999_us, 10);
}

TEST(TopFiguresTest, AQuantileLiesWithinItsBucket) {
  const std::vector<uint64_t> counts = {10, 10, 0, 0};
  EXPECT_DOUBLE_EQ(quantile_us(counts, kBounds, 0.25), 0.5);
  EXPECT_DOUBLE_EQ(quantile_us(counts, kBounds, 0.5), 1);
  EXPECT_DOUBLE_EQ(quantile_us(counts, kBounds, 0.75), 5.5);
  EXPECT_DOUBLE_EQ(quantile_us(counts, kBounds, 1), 10);
  EXPECT_DOUBLE_EQ(quantile_us(std::vector<uint64_t>{0, 0, 0, 0}, kBounds, 0.5), 0);
  EXPECT_DOUBLE_EQ(quantile_us(std::vector<uint64_t>{0, 0, 0, 5}, kBounds, 0.5), 100);
}

TEST(TopFiguresTest, SamplesOfTwoIncarnationsHaveNoRates) {
  const Sample before = sample_at(1, status_with(500, 0, 0, 0), {calls({})});
  Sample after = sample_at(2, status_with(20, 0, 0, 0), {calls({})});
  after.status["incarnation"] = 2;
  EXPECT_FALSE(figures_between(before, after).is_recent);
  EXPECT_FALSE(figures_between(Sample(), before).is_recent);
  EXPECT_FALSE(figures_between(before, before).is_recent) << "no time has passed";
  Sample silent;
  silent.time_ns = before.time_ns + 1;
  silent.note = "the cluster is being started again";
  const Figures figures = figures_between(before, silent);
  EXPECT_FALSE(figures.is_recent);
  EXPECT_TRUE(has_part(text_of(render(figures, View(), {80, 24}, "")), silent.note));
}

TEST(TopFiguresTest, JsonHasTheSameFigures) {
  const Json json = figures_json(busy_figures());
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["commits_per_s"], 1'200.0);
  EXPECT_EQ(json["aborts_per_s"]["race_abort"], 12.0);
  EXPECT_EQ(json["procedures"][1]["name"], "pay");
  EXPECT_EQ(json["procedures"][1]["execution_us"]["count"], 1'010);
  EXPECT_EQ(json["sessions"]["payload_bytes"], 3u << 20);
  EXPECT_EQ(json["snapshots"]["phase"], "gleaning");
  EXPECT_EQ(json["storages"][0]["operations_per_s"], 1'000.0);
  EXPECT_EQ(json["session_rows"].size(), 2u);
  EXPECT_FALSE(figures_json(Figures()).contains("commits_per_s")) << "nothing is known";
}

TEST(TopViewTest, TheScreenHasASummaryATableAndTheKeys) {
  const std::string text = text_of(render(busy_figures(), View(), {100, 24}, "12:00:00"));
  for (const char* part :
       {"atoll top: bank: running, durability durable", "12:00:00", "1,200/s", "race_abort 12",
        "1.0 MiB/s", "lag 1.5 ms", "3 open", "pools 25.0 %", "7 of epoch 5,000",
        "gleaner: gleaning", "PROCEDURE", "*COMMIT/s", "q quit"}) {
    EXPECT_TRUE(has_part(text, part)) << part << " is missing in\n" << text;
  }
  EXPECT_LT(text.find("pay"), text.find("audit")) << "the most commits first";
}

TEST(TopViewTest, EightyColumnsShowAllLatencies) {
  Figures figures = busy_figures();
  const Quantiles slow{1'000, 12'300, 99'900, 99'900};
  figures.execution = figures.durable = slow;
  figures.epochs = slow;
  figures.log_bytes_per_s = 123.4 * (1 << 20);
  for (ProcedureFigures& row : figures.procedure_rows) {
    row.execution = row.durable = slow;
    row.commits_per_s = 123'456;
  }
  const auto lines = render(figures, View(), {80, 24}, "12:00:00");
  size_t found = 0;
  for (const Line& line : lines) {
    for (const char* label : {"execution ", "durable ", "log "}) {
      if (!line.text.starts_with(label)) continue;
      EXPECT_TRUE(has_part(line.text, "p50 12.3 ms p99 99.9 ms p99.9 99.9 ms")) << line.text;
      ++found;
    }
    if (!line.text.starts_with("PROCEDURE")) continue;
    EXPECT_NE(line.text.find("p99.9"), line.text.rfind("p99.9")) << "of execution and durable";
    ++found;
  }
  EXPECT_EQ(found, 4u);
}

TEST(TopViewTest, EverySizeOfATerminalIsRespected) {
  const Figures figures = busy_figures();
  for (const bool shows_help : {false, true}) {
    for (size_t width = 1; width <= 140; ++width) {
      for (size_t height = 1; height <= 40; height += 3) {
        View view;
        view.shows_help = shows_help;
        const auto lines = render(figures, view, {width, height}, "12:00:00");
        ASSERT_LE(lines.size(), height) << width << "x" << height;
        ASSERT_FALSE(lines.empty());
        for (const Line& line : lines) ASSERT_LE(line.text.size(), width) << line.text;
      }
    }
  }
  // No figure is cut: a column or part is shown as a whole or not at all.
  const std::string narrow = text_of(render(figures, View(), {30, 24}, ""));
  EXPECT_TRUE(has_part(narrow, "PROCEDURE  *COMMIT/s  ABORT/s\n")) << narrow;
  EXPECT_TRUE(has_part(narrow, "1,200/s\n")) << narrow;
}

TEST(TopViewTest, KeysChooseRowsOrderAndHelp) {
  const Figures figures = busy_figures();
  View view;
  const auto press = [&](Key key) {
    apply_key(view, key, table_of(figures, view.rows).rows.size(), 10);
  };
  const auto text = [&] { return text_of(render(figures, view, {120, 24}, "")); };
  press(Key::reverse);
  EXPECT_GT(text().find("pay "), text().find("audit"));
  press(Key::sort_left);
  EXPECT_TRUE(has_part(text(), "*PROCEDURE"));
  EXPECT_GT(text().find("pay "), text().find("audit")) << "by name, not reversed";
  press(Key::sort_left);
  EXPECT_TRUE(has_part(text(), "*ABORTED BY"));
  press(Key::next_rows);
  EXPECT_TRUE(has_part(text(), "*OPERATIONS/s")) << text();
  EXPECT_LT(text().find("accounts"), text().find("cold")) << "the most operations first";
  press(Key::sort_right);
  EXPECT_GT(text().find("accounts"), text().find("cold")) << "the most pages read first";
  press(Key::nodes);
  EXPECT_TRUE(has_part(text(), "node0")) << text();
  press(Key::sessions);
  EXPECT_LT(text().find("0/4"), text().find("0/5")) << "the most requests in flight first";
  press(Key::sort_right);
  press(Key::sort_right);
  press(Key::help);
  EXPECT_TRUE(has_part(text(), "Keys of atoll top"));
  press(Key::help);
  press(Key::pause);
  EXPECT_TRUE(has_part(text(), "PAUSED"));
  press(Key::next_rows);
  EXPECT_EQ(view.rows, Rows::procedures);
}

TEST(TopViewTest, TheTableScrollsAndEndsAtItsLastRow) {
  Figures figures = busy_figures();
  for (int i = 0; i < 50; ++i) {
    figures.procedure_rows.push_back({});
    figures.procedure_rows.back().name = "p" + std::to_string(100 + i);
  }
  View view;
  apply_key(view, Key::page_down, 52, 20);
  EXPECT_EQ(view.first_row, 20u);
  EXPECT_FALSE(has_part(text_of(render(figures, view, {80, 24}, "")), "\npay"));
  for (int i = 0; i < 5; ++i) apply_key(view, Key::page_down, 52, 20);
  EXPECT_EQ(view.first_row, 51u);
  EXPECT_TRUE(has_part(text_of(render(figures, view, {80, 24}, "")), "p149"));
  apply_key(view, Key::up, 52, 20);
  EXPECT_EQ(view.first_row, 50u);
  apply_key(view, Key::home, 52, 20);
  apply_key(view, Key::page_up, 52, 20);
  EXPECT_EQ(view.first_row, 0u);
  apply_key(view, Key::down, 0, 20);
  EXPECT_EQ(view.first_row, 0u) << "without rows";
}

TEST(TopViewTest, ForeignTextCannotControlTheTerminal) {
  Figures figures = busy_figures();
  figures.procedure_rows[0].name = "\x1b]0;owned\x07" + std::string(100, 'x');
  figures.session_rows[0].program = "a\nb\xff";
  figures.problem = "tab\tand\rreturn";
  View view;
  for (const Rows rows : {Rows::procedures, Rows::sessions}) {
    view.rows = rows;
    for (const Line& line : render(figures, view, {200, 24}, "")) {
      EXPECT_TRUE(std::ranges::all_of(line.text, [](char c) { return c >= 0x20 && c < 0x7f; }))
          << line.text;
    }
  }
  EXPECT_EQ(clean("abcdef", 4), "abc~");
  EXPECT_EQ(clean("abcd", 4), "abcd");
}

}  // namespace
}  // namespace atolldb::top
