// A real Prometheus server scrapes a loaded cluster with the shipped config.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "shared/client/session_client.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/metrics_http.h"
#include "tests/cluster/procedure_library.h"
#include "tests/cluster/prometheus_server.h"
#include "tests/support/procedure_call.h"

namespace atolldb::test {
namespace {

namespace fs = std::filesystem;

class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest() : runner_(folder_) {}

  void SetUp() override {
    library_ = build_example_procedure(runner_);
    ASSERT_FALSE(library_.empty());
  }

  std::string config() const {
    return runner_.config("watched", "[procedures]\nlibraries = [\"" + library_ + "\"]");
  }

  std::string targets_file(const std::string& cluster = "watched") const {
    return folder_.path() + "/state/atoll/" + cluster + "/prometheus-targets.json";
  }

  /// Calls procedures on both nodes. Some of the transactions roll back.
  void load(const std::string& run_dir, uint32_t count) const {
    const std::array sessions = {SessionClient::connect(run_dir, 0),
                                 SessionClient::connect(run_dir, 1)};
    for (uint32_t i = 0; i < count; ++i) {
      const std::string input = i % 10 == 9 ? "1 2 1000000" : "3 4 0";
      const SessionReply reply = call_procedure(sessions[i % 2], "transfer", input);
      // One of ten transfers has no cover, and rolls back.
      ASSERT_EQ(reply.status, i % 10 == 9 ? Status::user_abort : Status::ok) << reply.message;
    }
  }

  /// Returns the scrapes of all processes by role.
  static std::map<std::string, std::string> scrapes(const CliCluster& cluster) {
    std::map<std::string, std::string> texts;
    const nlohmann::json status = cluster.status();
    for (const auto& process : status["processes"]) {
      texts[process["role"].get<std::string>()] =
          http_get(port_of(process["metrics"].get<std::string>()), "/metrics");
    }
    return texts;
  }

  TestFolder folder_;
  CliRunner runner_;
  std::string library_;
};

TEST_F(MetricsTest, ARealPrometheusSeesEveryProcessAndTheSameCountersAsStatus) {
  ASSERT_FALSE(find_program("prometheus").empty()) << "ops/setup --test brings it";
  CliCluster cluster(runner_, config());
  ASSERT_EQ(runner_
                .atoll({"storage", "create", "accounts", "--type", "array", "--payload-bytes", "8",
                        "--records", "100"})
                .code,
            0);
  const std::string run_dir = folder_.path() + "/atoll/watched";
  const PrometheusServer prometheus(runner_, {targets_file()});
  load(run_dir, 100);
  ASSERT_TRUE(eventually([&] {
    const auto up = prometheus.query("up");
    return up.size() == 3 && up.at("coordinator") == 1 && up.at("node0") == 1 &&
           up.at("node1") == 1;
  })) << prometheus.log();
  const auto commits = [&] { return prometheus.query("atoll_commits_total{type=\"write\"}"); };
  ASSERT_TRUE(eventually([&] { return commits().size() == 2 && commits().at("node0") > 0; }));
  const auto before = commits();

  load(run_dir, 200);
  const nlohmann::json status = cluster.status();
  ASSERT_TRUE(status.is_object());
  for (const auto& node : status["nodes"]) {
    const std::string role = "node" + std::to_string(node["node"].get<int>());
    EXPECT_GT(node["commits"].get<double>(), before.at(role)) << "the counters move";
    EXPECT_TRUE(eventually([&] { return commits()[role] == node["commits"].get<double>(); }))
        << role << ": " << commits()[role] << " is not " << node["commits"];
    const auto aborts = prometheus.query("atoll_aborts_total{reason=\"user_abort\"}");
    EXPECT_EQ(aborts.at(role), node["aborts"].value("user_abort", 0.0)) << role;
    EXPECT_GT(aborts.at(role) + aborts.at(role == "node0" ? "node1" : "node0"), 0) << role;
    const auto remote = prometheus.query("atoll_page_accesses_total{locality=\"remote\"}");
    EXPECT_EQ(remote.at(role), node["remote_accesses"].get<double>()) << role;
  }
  EXPECT_EQ(prometheus.query("atoll_cluster_running").at("coordinator"), 1);
  EXPECT_EQ(prometheus.query("atoll_storages").at("coordinator"), 1);

  EXPECT_EQ(cluster.down().code, 0);
  EXPECT_EQ(read_text(targets_file()), "[]\n");
  EXPECT_TRUE(eventually([&] { return prometheus.query("up").empty(); })) << prometheus.log();
}

TEST_F(MetricsTest, AProcessWhosePortIsTakenMovesAndTheSeriesKeepTheirNames) {
  const uint16_t base_port = free_ports(4);
  ASSERT_NE(base_port, 0);
  const auto config_of = [&](const std::string& name) {
    return runner_.config(name, "[metrics]\nbase_port = " + std::to_string(base_port));
  };
  const std::string own = ":" + std::to_string(base_port + 1) + "/metrics (node0)";
  {
    CliCluster first(runner_, config_of("watched"));
    EXPECT_NE(first.up().out.find(own), std::string::npos) << first.up().out;
    EXPECT_EQ(first.up().out.find("warning"), std::string::npos) << first.up().out;
    CliCluster second(runner_, config_of("moved"));
    EXPECT_NE(second.up().out.find("is in use: the metrics of node0 are on 127.0.0.1:"),
              std::string::npos)
        << second.up().out;
    const auto targets = nlohmann::json::parse(read_text(targets_file("moved")));
    ASSERT_EQ(targets.size(), 3u);
    EXPECT_EQ(targets[1]["labels"]["instance"], "moved/node0");
    EXPECT_NE(port_of(targets[1]["targets"][0]), base_port + 1);
    EXPECT_NE(http_get(port_of(targets[1]["targets"][0]), "/metrics"), "");
  }
  EXPECT_EQ(read_text(targets_file("moved")), "[]\n") << "down --now empties it, too";
  CliCluster again(runner_, config_of("watched"));
  EXPECT_NE(again.up().out.find(own), std::string::npos) << again.up().out;
}

TEST_F(MetricsTest, TargetsOfADeadClusterStayUntilTheUserStopsIt) {
  const std::string file = runner_.config("dead");
  CliCluster cluster(runner_, file);
  const auto endpoints =
      nlohmann::json::parse(read_text(folder_.path() + "/atoll/dead/endpoints.json"));
  ASSERT_EQ(kill(endpoints["launcher_pid"].get<pid_t>(), SIGKILL), 0);
  ASSERT_TRUE(eventually([] { return processes_of("dead").empty(); }));
  EXPECT_EQ(nlohmann::json::parse(read_text(targets_file("dead"))).size(), 3u)
      << "so that Prometheus sees that the cluster is down";
  EXPECT_EQ(cluster.down().code, 3);
  EXPECT_EQ(read_text(targets_file("dead")), "[]\n");
}

TEST_F(MetricsTest, ANodeServesResultsAndLatenciesOfTheProceduresThatClientsCall) {
  CliCluster cluster(runner_, config());
  ASSERT_EQ(runner_.atoll({"storage", "create", "people", "--type", "mastertree"}).code, 0);
  ASSERT_EQ(runner_
                .atoll({"storage", "create", "accounts", "--type", "array", "--payload-bytes", "8",
                        "--records", "100"})
                .code,
            0);
  EXPECT_EQ(scrapes(cluster)["node0"].find("procedure="), std::string::npos) << "none was called";
  const std::string run_dir = folder_.path() + "/atoll/watched";
  auto session = SessionClient::connect(run_dir, 0);
  ASSERT_TRUE(session) << session.error().message;
  const KvBytes alice = kv_bytes("alice");
  const auto put = [&](const SessionOptions& options) {
    KvRequest request;
    request.put("people", alice, kv_bytes("100"));
    return (*session)->call("kv.put", request.bytes(), options).status;
  };
  for (int i = 0; i < 3; ++i) ASSERT_EQ(put({}), Status::ok);
  ASSERT_EQ(put({.answer_at = AnswerAt::precommitted}), Status::ok);
  KvRequest again;
  again.insert("people", alice, kv_bytes("7"));
  ASSERT_EQ((*session)->call("kv.insert", again.bytes()).status, Status::already_exists);
  ASSERT_EQ((*session)->call("unknown", {}).status, Status::procedure_not_found);
  ASSERT_NO_FATAL_FAILURE(load(run_dir, 20));  // one call in ten aborts; those are on node 1

  // A client gets its answer after the call was counted.
  auto texts = scrapes(cluster);
  const std::string put_seconds = "{node=\"0\",procedure=\"kv.put\",stage=";
  const std::string insert_seconds = "{node=\"0\",procedure=\"kv.insert\",stage=";
  for (const std::string& line :
       {std::string("atoll_procedure_commits_total{node=\"0\",procedure=\"kv.put\"} 4\n"),
        std::string("atoll_procedure_commits_total{node=\"0\",procedure=\"kv.insert\"} 0\n"),
        std::string("atoll_procedure_aborts_total{node=\"0\",procedure=\"kv.insert\","
                    "reason=\"already_exists\"} 1\n"),
        std::string("atoll_procedure_aborts_total{node=\"0\",procedure=\"kv.put\","
                    "reason=\"already_exists\"} 0\n"),
        std::string("atoll_procedure_commits_total{node=\"0\",procedure=\"transfer\"} 10\n"),
        "atoll_procedure_seconds_count" + put_seconds + "\"execution\"} 4\n",
        "atoll_procedure_seconds_bucket" + put_seconds + "\"execution\",le=\"+Inf\"} 4\n",
        // The precommitted request has no durable answer.
        "atoll_procedure_seconds_count" + put_seconds + "\"durable\"} 3\n",
        "atoll_procedure_seconds_bucket" + put_seconds + "\"durable\",le=\"+Inf\"} 3\n",
        "atoll_procedure_seconds_count" + insert_seconds + "\"execution\"} 1\n",
        "atoll_procedure_seconds_count" + insert_seconds + "\"durable\"} 1\n"}) {
    EXPECT_NE(texts["node0"].find(line), std::string::npos) << line << "is missing in\n"
                                                            << texts["node0"];
  }
  EXPECT_NE(texts["node0"].find("atoll_procedure_retries_total{node=\"0\",procedure=\"kv.put\"} "),
            std::string::npos);
  EXPECT_EQ(texts["node0"].find("procedure=\"unknown\""), std::string::npos);
  EXPECT_EQ(texts["node1"].find("procedure=\"kv."), std::string::npos);
  for (const char* line :
       {"atoll_procedure_commits_total{node=\"1\",procedure=\"transfer\"} 8\n",
        "atoll_procedure_aborts_total{node=\"1\",procedure=\"transfer\",reason=\"user_abort\"} 2\n",
        "atoll_procedure_seconds_count{node=\"1\",procedure=\"transfer\",stage=\"durable\"} "
        "10\n"}) {
    EXPECT_NE(texts["node1"].find(line), std::string::npos) << line << "is missing in\n"
                                                            << texts["node1"];
  }
}

TEST_F(MetricsTest, EveryProcessServesItsBuildAndItsUseOfTheMachine) {
  CliCluster cluster(runner_, config());
  const auto texts = scrapes(cluster);
  ASSERT_EQ(texts.size(), 3u);
  for (const auto& [role, text] : texts) {
    EXPECT_NE(text.find("atoll_build_info{version=\""), std::string::npos) << role;
    for (const char* name : {"process_cpu_seconds_total", "process_resident_memory_bytes",
                             "process_virtual_memory_bytes", "process_open_fds", "process_max_fds",
                             "process_start_time_seconds"}) {
      const std::string begin = "\n" + std::string(name) + " ";
      const size_t at = text.find(begin);
      ASSERT_NE(at, std::string::npos) << role << ": " << name;
      EXPECT_GT(std::stod(text.substr(at + begin.size())), 0) << role << ": " << name;
    }
  }
}

TEST_F(MetricsTest, PromtoolFindsNothingToComplainAbout) {
  const std::string promtool = find_program("promtool");
  ASSERT_FALSE(promtool.empty()) << "ops/setup --test brings it";
  CliCluster cluster(runner_, config());
  ASSERT_EQ(runner_.atoll({"procedure", "call", "kv.get", "x"}).code, 1);  // counts as a call
  const nlohmann::json status = cluster.status();
  ASSERT_TRUE(status.is_object());
  for (const auto& process : status["processes"]) {
    ASSERT_TRUE(process["metrics"].is_string()) << process;
    const std::string text = http_get(port_of(process["metrics"]), "/metrics");
    ASSERT_NE(text.find("# HELP atoll_"), std::string::npos) << process;
    const std::string file = folder_.path() + "/scrape";
    std::ofstream(file) << text;
    const Ran checked =
        runner_.run("/bin/sh", {"-c", "exec '" + promtool + "' check metrics < '" + file + "'"});
    EXPECT_EQ(checked.code, 0) << process["role"] << "\n" << checked.error << checked.out;
    EXPECT_EQ(checked.error + checked.out, "") << process["role"];
  }
}

TEST_F(MetricsTest, AlertsFireWhenTheyShouldAndNotBefore) {
  const std::string promtool = find_program("promtool");
  ASSERT_FALSE(promtool.empty()) << "ops/setup --test brings it";
  const std::string ops = std::string(ATOLL_SOURCE_DIR) + "/ops/";
  const Ran checked = runner_.run(promtool, {"check", "rules", ops + "alerts.yml"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.error;
  const Ran tested = runner_.run(promtool, {"test", "rules", ops + "alerts_test.yml"});
  EXPECT_EQ(tested.code, 0) << tested.out << tested.error;
}

TEST_F(MetricsTest, MetricsCanBeSwitchedOff) {
  CliCluster cluster(runner_, runner_.config("dark", "[metrics]\nenabled = false"));
  EXPECT_EQ(cluster.up().out.find("/metrics"), std::string::npos) << cluster.up().out;
  const nlohmann::json status = cluster.status();
  ASSERT_EQ(status["processes"].size(), 3u) << status;
  for (const auto& process : status["processes"]) {
    EXPECT_TRUE(process["metrics"].is_null() || process["metrics"] == "") << process;
  }
}

}  // namespace
}  // namespace atolldb::test
