// Metrics of snapshots in scrapes of a cluster.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "shared/client/session_client.h"
#include "shared/config/machine.h"
#include "shared/kv/kv_request.h"
#include "shared/process/start_up.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/metrics_http.h"
#include "tests/cluster/ordered_bytes.h"
#include "tests/cluster/procedure_library.h"
#include "tests/support/procedure_call.h"

namespace atolldb::test {
namespace {

class SnapshotMetricsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = build_example_procedure(runner_);
    ASSERT_FALSE(library_.empty());
    // Configures an archive, so that the scrapes have its metrics, too.
    const std::string archive = folder_.path() + "/archive";
    std::filesystem::create_directory(archive);
    const std::string config =
        runner_.config("seen", "[durability]\nmode = \"durable\"\n[archive]\ndirectory = \"" +
                                   archive + "\"\n[gleaner]\n" + gleaner_ +
                                   "\n[procedures]\nlibraries = [\"" + library_ + "\"]");
    std::string text = read_text(config);
    const std::string nodes = "[nodes]\ncount = 2\n";
    ASSERT_TRUE(text.contains(nodes));
    std::ofstream(config) << text.replace(text.find(nodes), nodes.size(), nodes_);
    cluster_ = std::make_unique<CliCluster>(runner_, config);
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
    const std::array sessions = {SessionClient::connect(run_dir, 0),
                                 SessionClient::connect(run_dir, 1)};
    for (uint32_t i = 0; i < count; ++i) {
      // A transfer to the next account writes two records.
      const std::string input =
          std::to_string(1000 * i) + " " + std::to_string(1000 * i + 1) + " 0";
      const SessionReply reply = call_procedure(sessions[i % 2], "transfer", input);
      ASSERT_EQ(reply.status, Status::ok) << reply.message;
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

  std::string gleaner_;                         // lines of this section of the config
  std::string nodes_ = "[nodes]\ncount = 2\n";  // section of the config
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

  // The nodes report these counters with their next heartbeat.
  EXPECT_TRUE(eventually([&] { return on_nodes("atoll_composer_records_total") == 80; }))
      << scrape("node0") << scrape("node1");
  EXPECT_EQ(on_nodes("atoll_mapper_read_records_total"), 80);
  EXPECT_EQ(on_nodes("atoll_mapper_shipped_records_total"), 80);
  EXPECT_EQ(on_nodes("atoll_reducer_received_records_total"), 80);
  EXPECT_GT(on_nodes("atoll_mapper_read_bytes_total"), 0);
  EXPECT_GT(on_nodes("atoll_composer_written_pages_total"), 0);
  EXPECT_EQ(on_nodes("atoll_composer_written_bytes_total"),
            4096 * on_nodes("atoll_composer_written_pages_total"));
  EXPECT_NE(scrape("node0").find("atoll_gleaner_phase{node=\"0\",phase=\"idle\"} 1\n"),
            std::string::npos);

  // The counters increase with the next snapshot.
  commit(10);
  ASSERT_EQ(runner_.atoll({"snapshot", "take"}).code, 0);
  EXPECT_GE(value("coordinator", "atoll_snapshots_taken_total"), 1);
  EXPECT_TRUE(eventually([&] { return on_nodes("atoll_mapper_read_records_total") == 100; }))
      << scrape("node0") << scrape("node1");
}

/// Keeps a processor busy with a thread of the lowest priority, so it takes no time from others.
class BusyCpu {
 public:
  explicit BusyCpu(int32_t cpu) {
    thread_ = std::jthread([cpu](const std::stop_token& stop) {
      EXPECT_TRUE(pin_thread(std::array{cpu}, "gleaner_cpus"));
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
      while (!stop.stop_requested()) {
      }
    });
  }

 private:
  std::jthread thread_;
};

/// A cluster that takes snapshots by volume of log. A job does not pause while its processors are
/// mostly idle. Here `gleaner_cpus` is a single processor that is never idle, because BusyCpu keeps
/// it busy.
class PacedSnapshotMetricsTest : public SnapshotMetricsTest {
 protected:
  static constexpr double kMiB = 1 << 20;
  static constexpr double kLogVolumeMiB = 64;

  PacedSnapshotMetricsTest() {
    gleaner_ = "interval = \"24h\"\nlog_volume = \"64MiB\"";
    nodes_ = "";
    for (int node = 0; node < 2; ++node) {
      nodes_ += "[[node]]\ngleaner_cpus = [" + std::to_string(cpu_) + "]\n";
    }
  }

  /// Updates the same records of node 0 until its loggers have written `mib` MiB.
  void write_log(double mib) {
    if (!has_storage_) {
      ASSERT_EQ(runner_.atoll({"storage", "create", "kept", "--type", "mastertree"}).code, 0);
      has_storage_ = true;
    }
    std::vector<std::jthread> writers;
    for (uint64_t writer = 0; writer < 8; ++writer) {
      writers.emplace_back([this, writer](const std::stop_token& stop) {
        auto session = SessionClient::connect(folder_.path() + "/atoll/seen", 0);
        ASSERT_TRUE(session) << session.error().message;
        const std::array<std::byte, 800> value = {};
        KvRequest request;
        for (uint64_t key = 0; key < 64; ++key) {
          request.put("kept", ordered_bytes(64 * writer + key), value);
        }
        while (!stop.stop_requested()) {
          const SessionReply reply = (*session)->call("kv.txn", request.bytes());
          ASSERT_EQ(reply.status, Status::ok) << reply.message;
        }
      });
    }
    // On a slow device one wait may not suffice.
    bool is_written = false;
    for (int wait = 0; wait < 4 && !is_written; ++wait) {
      is_written = eventually(
          [&] { return value("node0", "atoll_logger_written_bytes_total") >= mib * kMiB; });
    }
    EXPECT_TRUE(is_written);
  }
  double paused_seconds() const { return on_nodes("atoll_gleaner_paused_seconds_total"); }

  const int32_t cpu_ = Machine::detect().cpus.front();
  BusyCpu busy_{cpu_};
  bool has_storage_ = false;
};

TEST_F(PacedSnapshotMetricsTest, ARequestedSnapshotDoesNotPause) {
  // At the lowest pace, the threads of a job over this log would pause for about a second.
  constexpr double kLogMiB = 16;
  ASSERT_NO_FATAL_FAILURE(write_log(kLogMiB));
  const Ran taken = runner_.atoll({"snapshot", "take"});
  ASSERT_EQ(taken.code, 0) << taken.error;
  // The nodes report this counter with their next heartbeat.
  EXPECT_TRUE(
      eventually([&] { return on_nodes("atoll_mapper_read_bytes_total") >= kLogMiB * kMiB; }));
  EXPECT_EQ(paused_seconds(), 0);
}

TEST_F(PacedSnapshotMetricsTest, ASnapshotThatNothingWaitsForPausesAndARequestEndsThePauses) {
  // The metric counts from an earlier moment than the snapshots do, so the test writes some MiB
  // more.
  ASSERT_NO_FATAL_FAILURE(write_log(kLogVolumeMiB + 4));
  ASSERT_TRUE(eventually([&] { return paused_seconds() > 0; })) << "no snapshot has paused";
  EXPECT_EQ(value("coordinator", "atoll_snapshot_running"), 1) << "the pause has not ended";
  const double before = paused_seconds();
  const Ran taken = runner_.atoll({"snapshot", "take"});
  EXPECT_EQ(taken.code, 0) << taken.error;
  EXPECT_GE(value("coordinator", "atoll_snapshots_taken_total"), 1);
  // At the lowest pace, the pauses of all threads would add up to about five seconds. If the
  // coordinator stalls, pauses end after one second, and two threads may pause.
  EXPECT_LT(paused_seconds() - before, 3.5);
  const nlohmann::json status = cluster_->status();
  EXPECT_TRUE(status["snapshots"]["run"]["progress"].contains("paused_us")) << status.dump();
}

}  // namespace
}  // namespace atolldb::test
