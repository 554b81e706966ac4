// Metrics of snapshots in scrapes of a cluster.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "shared/client/session_client.h"
#include "shared/kv/kv_request.h"
#include "shared/message/control_client.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/metrics_http.h"
#include "tests/cluster/ordered_bytes.h"
#include "tests/cluster/procedure_library.h"

namespace atolldb::test {
namespace {

class SnapshotMetricsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = build_example_procedure(runner_);
    ASSERT_FALSE(library_.empty());
    // With an archive, so that its metrics are there, too.
    const std::string archive = folder_.path() + "/archive";
    std::filesystem::create_directory(archive);
    cluster_ = std::make_unique<CliCluster>(
        runner_,
        runner_.config("seen", "[durability]\nmode = \"durable\"\n[archive]\ndirectory = \"" +
                                   archive + "\"\n[gleaner]\n" + gleaner_ +
                                   "\n[procedures]\nlibraries = [\"" + library_ + "\"]"));
    const nlohmann::json status = cluster_->status();
    for (const auto& process : status["processes"]) {
      const auto role = process["role"].get<std::string>();
      ports_[role] = port_of(process["metrics"].get<std::string>());
    }
    ASSERT_EQ(runner_
                  .atoll({"storage", "create", "accounts", "--type", "array", "--payload-bytes",
                          "8", "--records", "100000"})
                  .code,
              0);
  }

  void commit(uint32_t count) const {
    const std::string run_dir = folder_.path() + "/atoll/seen";
    for (uint32_t i = 0; i < count; ++i) {
      const ControlClient node("ipc://" + run_dir + "/node" + std::to_string(i % 2) + ".sock");
      // A transfer to the next account writes two records.
      const std::string input =
          std::to_string(1000 * i) + " " + std::to_string(1000 * i + 1) + " 0";
      const auto answer =
          node.call(ControlOperation::procedure_call, {{"name", "transfer"}, {"input", input}},
                    std::chrono::milliseconds(10'000));
      ASSERT_TRUE(answer) << answer.error().message;
    }
  }

  std::string scrape(const std::string& role) const {
    return http_get(ports_.at(role), "/metrics");
  }
  /// Returns the sum of a family's samples in a scrape, or -1 if there are none.
  double value(const std::string& role, const std::string& name) const {
    double sum = -1;
    std::istringstream lines(scrape(role));
    for (std::string line; std::getline(lines, line);) {
      const size_t end = line.find_first_of("{ ");
      if (line.substr(0, end) != name) continue;
      sum = std::max(sum, 0.0) + std::stod(line.substr(line.rfind(' ') + 1));
    }
    return sum;
  }
  double on_nodes(const std::string& name) const {
    return value("node0", name) + value("node1", name);
  }

  std::string gleaner_;  // lines of this section of the config
  TestFolder folder_;
  CliRunner runner_{folder_};
  std::string library_;
  std::unique_ptr<CliCluster> cluster_;
  std::map<std::string, uint16_t> ports_;
};

TEST_F(SnapshotMetricsTest, ASnapshotIsSeenOnTheCoordinatorAndItsWorkOnTheNodes) {
  EXPECT_EQ(value("coordinator", "atoll_snapshots_taken_total"), 0);
  EXPECT_EQ(value("coordinator", "atoll_snapshots_failed_total"), 0);
  EXPECT_EQ(value("coordinator", "atoll_snapshot_id"), 0);
  commit(40);
  const Ran taken = runner_.atoll({"snapshot", "take"});
  ASSERT_EQ(taken.code, 0) << taken.error;
  EXPECT_EQ(value("coordinator", "atoll_snapshots_taken_total"), 1);
  EXPECT_EQ(value("coordinator", "atoll_snapshots_failed_total"), 0);
  EXPECT_EQ(value("coordinator", "atoll_snapshot_running"), 0);
  EXPECT_GT(value("coordinator", "atoll_snapshot_id"), 0);
  EXPECT_GT(value("coordinator", "atoll_snapshot_duration_seconds"), 0);
  EXPECT_GT(value("coordinator", "atoll_snapshot_timestamp_seconds"), 1.7e9);
  EXPECT_GE(value("coordinator", "atoll_snapshot_files"), 1);
  EXPECT_GT(value("coordinator", "atoll_snapshot_written_bytes"), 0);
  EXPECT_EQ(value("coordinator", "atoll_snapshot_stored_bytes"),
            value("coordinator", "atoll_snapshot_written_bytes"))
      << "it is the first one";
  const nlohmann::json status = cluster_->status();
  const nlohmann::json& snapshot = status["snapshots"];
  EXPECT_EQ(value("coordinator", "atoll_snapshot_id"), snapshot["newest"].get<double>());
  EXPECT_EQ(value("coordinator", "atoll_snapshot_epoch"), snapshot["epoch"].get<double>());

  // The nodes report this with their next heartbeat.
  EXPECT_TRUE(eventually([&] { return on_nodes("atoll_composer_records_total") == 80; }))
      << scrape("node0") << scrape("node1");
  EXPECT_EQ(on_nodes("atoll_mapper_read_records_total"), 80);
  EXPECT_EQ(on_nodes("atoll_mapper_shipped_records_total"), 80);
  EXPECT_EQ(on_nodes("atoll_reducer_received_records_total"), 80);
  EXPECT_GT(on_nodes("atoll_mapper_read_bytes_total"), 0);
  EXPECT_GT(on_nodes("atoll_composer_written_pages_total"), 0);
  EXPECT_EQ(on_nodes("atoll_composer_written_bytes_total"),
            4096 * on_nodes("atoll_composer_written_pages_total"));
  EXPECT_EQ(on_nodes("atoll_gleaner_paused_seconds_total"), 0) << "a request does not wait longer";
  EXPECT_NE(scrape("node0").find("atoll_gleaner_phase{node=\"0\",phase=\"idle\"} 1\n"),
            std::string::npos);

  // The counters increase with the next run.
  commit(10);
  ASSERT_EQ(runner_.atoll({"snapshot", "take"}).code, 0);
  EXPECT_EQ(value("coordinator", "atoll_snapshots_taken_total"), 2);
  EXPECT_TRUE(eventually([&] { return on_nodes("atoll_mapper_read_records_total") == 100; }))
      << scrape("node0") << scrape("node1");
}

class PacedSnapshotMetricsTest : public SnapshotMetricsTest {
 protected:
  PacedSnapshotMetricsTest() { gleaner_ = "interval = \"2s\""; }

  /// Writes the same 64 records until a snapshot has begun to pause.
  void write_until_a_snapshot_pauses() {
    auto session = SessionClient::connect(folder_.path() + "/atoll/seen", 0);
    ASSERT_TRUE(session) << session.error().message;
    const std::array<std::byte, 800> value = {};
    KvRequest request;
    for (uint64_t key = 0; key < 64; ++key) request.put("kept", ordered_bytes(key), value);
    for (int i = 1;; ++i) {
      ASSERT_LT(i, 20'000) << "no snapshot has paused";
      const SessionReply reply = (*session)->call("kv.txn", request.bytes());
      ASSERT_EQ(reply.status, Status::ok) << reply.message;
      if (i % 100 == 0 && on_nodes("atoll_gleaner_paused_seconds_total") > 0) return;
    }
  }
};

TEST_F(PacedSnapshotMetricsTest, ASnapshotThatNothingWaitsForPausesAndARequestEndsThePauses) {
  ASSERT_EQ(runner_.atoll({"storage", "create", "kept", "--type", "mastertree"}).code, 0);
  ASSERT_NO_FATAL_FAILURE(write_until_a_snapshot_pauses());
  const auto begun = std::chrono::steady_clock::now();
  const Ran taken = runner_.atoll({"snapshot", "take"});
  EXPECT_EQ(taken.code, 0) << taken.error;
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
  const nlohmann::json status = cluster_->status();
  EXPECT_TRUE(status["snapshots"]["run"]["progress"].contains("paused_us")) << status.dump();
}

TEST_F(SnapshotMetricsTest, AlertsAndDashboardsNameWhatIsThere) {
  std::set<std::string> known;
  const std::regex family("# HELP (atoll_[a-z_]+) ");
  for (const auto& [role, port] : ports_) {
    const std::string text = scrape(role);
    for (std::sregex_iterator at(text.begin(), text.end(), family), end; at != end; ++at) {
      known.insert((*at)[1]);
    }
  }
  ASSERT_GT(known.size(), 50u);
  const std::regex name("atoll_[a-z_]+");
  for (const char* file : {"/ops/alerts.yml", "/ops/alerts_test.yml", "/ops/grafana/atoll.json"}) {
    const std::string text = read_text(std::string(ATOLL_SOURCE_DIR) + file);
    std::sregex_iterator at(text.begin(), text.end(), name);
    ASSERT_NE(at, std::sregex_iterator()) << file;
    for (; at != std::sregex_iterator(); ++at) {
      EXPECT_TRUE(known.contains(at->str())) << file << ": " << at->str();
    }
  }
  const auto dashboard = nlohmann::json::parse(
      read_text(std::string(ATOLL_SOURCE_DIR) + "/ops/grafana/atoll.json"), nullptr, false);
  ASSERT_TRUE(dashboard.is_object());
  EXPECT_GE(dashboard["panels"].size(), 8u);
}

}  // namespace
}  // namespace atolldb::test
