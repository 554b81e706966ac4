// The dashboard and the alerts name metrics that exist, every family is on a panel or deliberately
// left out, and a real Prometheus evaluates all expressions, with and without load.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cluster/cli_run.h"
#include "tests/cluster/metrics_http.h"
#include "tests/cluster/prometheus_server.h"

namespace atolldb::test {
namespace {

using Names = std::set<std::string>;

std::string shipped(const std::string& file) {
  return read_text(std::string(ATOLL_SOURCE_DIR) + "/ops/" + file);
}

/// Returns the families that a text names, of all `known` ones. A name that is no family stays as
/// it is.
Names names_in(const std::string& text, const Names& known) {
  // The series of a histogram have more words at their ends than its family.
  const std::regex name("\\b(atoll|process)_[a-z_]+");
  const std::regex end_of_series("_(bucket|sum|count)$");
  Names names;
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
    const std::string family = std::regex_replace(at->str(), end_of_series, "");
    names.insert(known.contains(family) ? family : at->str());
  }
  return names;
}

/// Returns the expressions of all panels, with the name of the cluster that takes snapshots, or of
/// the one that takes checkpoints.
std::vector<std::string> panel_expressions() {
  const auto dashboard = nlohmann::json::parse(shipped("grafana/atoll.json"), nullptr, false);
  std::vector<std::string> expressions;
  if (!dashboard.is_object()) return expressions;
  for (const auto& panel : dashboard["panels"]) {
    for (const auto& target : panel.value("targets", nlohmann::json::array())) {
      std::string expression = target["expr"];
      const bool is_of_checkpoints =
          expression.contains("atoll_checkpoint") || expression.contains("atoll_replay");
      for (size_t at = 0; (at = expression.find("$cluster", at)) != std::string::npos;) {
        expression.replace(at, 8, is_of_checkpoints ? "seen_too" : "seen");
      }
      expressions.push_back(expression);
    }
  }
  return expressions;
}

/// Returns the metric families that ops/grafana/left_out.txt names.
Names left_out() {
  Names names;
  std::istringstream lines(shipped("grafana/left_out.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    std::string name;
    std::string reason;
    words >> name >> reason;
    EXPECT_FALSE(reason.empty()) << name << " has no reason";
    EXPECT_TRUE(names.insert(name).second) << name << " is there twice";
  }
  return names;
}

class DashboardTest : public ::testing::Test {
 protected:
  /// Configures an archive and network sessions, so that the scrapes have their metrics, too.
  DashboardTest() {
    const std::string archive = folder_.path() + "/archive";
    std::filesystem::create_directory(archive);
    cluster_ = std::make_unique<CliCluster>(
        runner_,
        runner_.config("seen", "[durability]\nmode = \"durable\"\n[archive]\ndirectory = \"" +
                                   archive +
                                   "\"\n[network]\nenabled = true\nbase_port = 0\n"
                                   "without_keys = true"));
    checkpointed_ = std::make_unique<CliCluster>(
        runner_,
        runner_.config("seen_too", "[durability]\nmode = \"durable\"\nscheme = \"silor\""));
  }

  void expect_runs(std::vector<std::string> arguments) const {
    const std::string what = testing::PrintToString(arguments);
    const Ran ran = runner_.atoll(std::move(arguments));
    EXPECT_EQ(ran.code, 0) << what << ": " << ran.error;
  }

  /// Makes samples of all families: commits, reads of a snapshot, and a backup.
  void load(const std::string& cluster, int count) const {
    for (int i = 0; i < count; ++i) {
      for (const char* node : {"0", "1"}) {
        expect_runs({"kv", "put", "people", node + std::to_string(i), "v", "--node", node,
                     "--cluster", cluster});
      }
    }
  }

  Names families() const {
    Names known;
    const std::regex family("# HELP ([a-z_]+) ");
    for (const auto* cluster : {cluster_.get(), checkpointed_.get()}) {
      const nlohmann::json status = cluster->status();
      for (const auto& process : status["processes"]) {
        const std::string text = http_get(port_of(process["metrics"]), "/metrics");
        for (std::sregex_iterator at(text.begin(), text.end(), family), end; at != end; ++at) {
          known.insert((*at)[1]);
        }
      }
    }
    return known;
  }

  void expect_names_exist(const Names& known) const {
    for (const char* file : {"alerts.yml", "alerts_test.yml", "grafana/atoll.json"}) {
      const Names names = names_in(shipped(file), known);
      EXPECT_FALSE(names.empty()) << file;
      for (const std::string& name : names) {
        EXPECT_TRUE(known.contains(name)) << file << " names " << name << ", which is in no scrape";
      }
    }
  }

  TestFolder folder_;
  CliRunner runner_{folder_};
  std::unique_ptr<CliCluster> cluster_;
  std::unique_ptr<CliCluster> checkpointed_;  // takes checkpoints, and no snapshots
};

TEST_F(DashboardTest, EveryFamilyIsOnAPanelOrLeftOutAndEveryExpressionHasValuesUnderLoad) {
  ASSERT_FALSE(find_program("prometheus").empty()) << "ops/setup --test brings it";
  const std::string state = folder_.path() + "/state/atoll/";
  const PrometheusServer prometheus(runner_, {state + "seen/prometheus-targets.json",
                                              state + "seen_too/prometheus-targets.json"});
  const auto all_up = [&] { return prometheus.evaluate("up == 1").size() == 6; };
  ASSERT_TRUE(eventually(all_up)) << prometheus.log();
  const std::vector<std::string> expressions = panel_expressions();
  EXPECT_GE(expressions.size(), 100u);
  for (const std::string& expression : expressions) {
    EXPECT_TRUE(prometheus.evaluate(expression).is_array()) << "without load: " << expression;
  }

  for (const char* cluster : {"seen", "seen_too"}) {
    expect_runs({"storage", "create", "people", "--type", "mastertree", "--cluster", cluster});
    load(cluster, 2);
  }
  expect_runs({"storage", "create", "accounts", "--type", "array", "--payload-bytes", "8",
               "--records", "100", "--cluster", "seen"});
  expect_runs({"snapshot", "take", "--cluster", "seen"});
  expect_runs({"checkpoint", "take", "--cluster", "seen_too"});
  for (const char* node : {"0", "1"}) {
    expect_runs({"kv", "get", "people", "00", "--isolation", "snapshot_read_only", "--node", node,
                 "--cluster", "seen"});
  }
  expect_runs({"backup", folder_.path() + "/backups", "--cluster", "seen"});
  for (const std::string& expression : expressions) {
    // These show failures and waits that this load does not have.
    if (expression.ends_with("> 0")) continue;
    EXPECT_TRUE(eventually([&] { return !prometheus.evaluate(expression).empty(); }))
        << "with load: " << expression;
  }

  const Names known = families();
  ASSERT_GT(known.size(), 100u);
  expect_names_exist(known);
  const Names on_panels = names_in(shipped("grafana/atoll.json"), known);
  const Names omitted = left_out();
  for (const std::string& name : known) {
    EXPECT_NE(on_panels.contains(name), omitted.contains(name))
        << name
        << (omitted.contains(name) ? " is on a panel and in ops/grafana/left_out.txt"
                                   : " is on no panel and not in ops/grafana/left_out.txt");
  }
  for (const std::string& name : omitted) {
    EXPECT_TRUE(known.contains(name))
        << "ops/grafana/left_out.txt names " << name << ", which is in no scrape";
  }
}

}  // namespace
}  // namespace atolldb::test
