// The complete TPC-C benchmark with a small database, on clusters of threads and of processes, and
// across restarts.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/tpcc_driver/driver.h"
#include "ops/cli/bench_cluster.h"
#include "ops/cli/running_cluster.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb::tpcc {
namespace {

constexpr Scale kSmallScale{.items = 1'000, .customers = 60, .new_orders = 18, .last_names = 20};

struct Setting {
  LaunchMode mode;
  uint32_t nodes;
  uint32_t workers;
  uint32_t remote_percent;
};

Config config_of(const test::TestFolder& folder, const Setting& setting) {
  Config config = folder.config("tpcc", setting.nodes, setting.workers);
  config.memory.volatile_pool = uint64_t{256} << 20;
  return config;
}

Options options_of(uint32_t remote_percent) {
  Options options;
  options.scale = kSmallScale;
  options.seconds = 1;
  options.warmup_seconds = 0;
  options.remote_percent = remote_percent;
  options.remote_payment_percent = remote_percent;
  options.seed = test::seed();
  return options;
}

const Console kSilent{[](const std::string&) {}, [](const std::string&) {}};

void expect_consistent(const Result<Report>& report) {
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->verify_done);
  EXPECT_EQ(report->violations, std::vector<std::string>{});
  EXPECT_EQ(exit_code_of(*report), ExitCode::success) << report->text();
  EXPECT_GT(report->median_tps(), 0.0);
}

class TpccOnClusters : public testing::TestWithParam<Setting> {};

TEST_P(TpccOnClusters, IsConsistentAndCountsWhatIsRemote) {
  const Setting& setting = GetParam();
  const test::TestFolder folder;
  auto cluster = Cluster::launch(config_of(folder, setting), setting.mode, ATOLL_BIN_DIR);
  ASSERT_TRUE(cluster.has_value()) << cluster.error().message;
  cli::BenchPort port(**cluster);
  const Options options = options_of(setting.remote_percent);
  const uint32_t warehouses = setting.nodes * setting.workers;
  std::vector<std::string> lines;
  const Console console{[&](const std::string& line) { lines.push_back(line); },
                        [](const std::string&) {}};
  const Result<Report> report = Driver(port, options, warehouses, console).go();
  ASSERT_NO_FATAL_FAILURE(expect_consistent(report));
  EXPECT_FALSE(lines.empty());

  const RunSummary& run = report->median_run();
  ASSERT_EQ(run.nodes.size(), setting.nodes);
  for (const NodeSummary& node : run.nodes) {
    EXPECT_GT(node.tps, 0.0);
    EXPECT_GT(node.engine.local_locks, 0u);
    // If all transactions are remote, each node writes into the pools of other nodes.
    if (setting.nodes > 1 && setting.remote_percent == 100) {
      EXPECT_GT(node.engine.remote_locks, 0u);
      EXPECT_GT(node.engine.remote_accesses, 0u);
    }
    if (setting.nodes == 1) {
      EXPECT_EQ(node.engine.remote_accesses, 0u);
      EXPECT_EQ(node.engine.remote_locks, 0u);
    }
    // Transactions of different warehouses share border pages of the trees, and these belong to one
    // node. Without remote lines and payments, hardly any locks are remote.
    if (setting.remote_percent == 0) {
      EXPECT_LT(node.engine.remote_locks * 100, node.engine.local_locks);
    }
  }
  const Result<void> stopped = (*cluster)->shutdown();
  EXPECT_TRUE(stopped.has_value()) << stopped.error().message;
}

/// Returns the settings that the test runs with. The long form has five more.
std::vector<Setting> settings_of_clusters() {
  std::vector<Setting> found = {{LaunchMode::thread, 1, 2, 10},   {LaunchMode::thread, 2, 2, 100},
                                {LaunchMode::process, 1, 1, 1},   {LaunchMode::process, 2, 1, 0},
                                {LaunchMode::process, 2, 1, 100}, {LaunchMode::process, 3, 1, 10},
                                {LaunchMode::process, 4, 4, 20}};
  const std::vector<Setting> more = {{LaunchMode::thread, 2, 1, 1},
                                     {LaunchMode::process, 2, 1, 1},
                                     {LaunchMode::process, 2, 1, 10},
                                     {LaunchMode::process, 4, 1, 100},
                                     {LaunchMode::process, 2, 4, 15}};
  if (test::rounds(0, 1) != 0) found.insert(found.end(), more.begin(), more.end());
  return found;
}

INSTANTIATE_TEST_SUITE_P(Settings, TpccOnClusters, testing::ValuesIn(settings_of_clusters()),
                         [](const auto& instance) {
                           const Setting& setting = instance.param;
                           return std::string(setting.mode == LaunchMode::thread ? "threads"
                                                                                 : "processes") +
                                  "_" + std::to_string(setting.nodes) + "nodes_" +
                                  std::to_string(setting.workers) + "workers_" +
                                  std::to_string(setting.remote_percent) + "remote";
                         });

TEST(TpccDriver, RepeatsAndReportsTheMedian) {
  const test::TestFolder folder;
  auto cluster =
      Cluster::launch(config_of(folder, {LaunchMode::thread, 2, 1, 1}), LaunchMode::thread);
  ASSERT_TRUE(cluster.has_value()) << cluster.error().message;
  cli::BenchPort port(**cluster);
  Options options = options_of(1);
  options.repeat = 3;
  const Result<Report> report = Driver(port, options, 2, kSilent).go();
  ASSERT_TRUE(report.has_value()) << report.error().message;
  ASSERT_EQ(report->runs.size(), 3u);
  EXPECT_EQ(report->json()["runs"].size(), 3u);
  EXPECT_TRUE(report->violations.empty());
}

TEST(TpccDriver, EndsEarlyWhenAPoolIsFullAndWhatWasCommittedIsConsistent) {
  const test::TestFolder folder;
  Config config = config_of(folder, {LaunchMode::process, 2, 1, 1});
  config.memory.volatile_pool = uint64_t{8} << 20;
  // With a log, snapshots would free pages, and the benchmark would continue.
  config.durability.mode = DurabilityMode::off;
  auto cluster = Cluster::launch(config, LaunchMode::process, ATOLL_BIN_DIR);
  ASSERT_TRUE(cluster.has_value()) << cluster.error().message;
  cli::BenchPort port(**cluster);
  Options options = options_of(1);
  options.seconds = 600;
  options.repeat = 5;
  const Result<Report> report = Driver(port, options, 2, kSilent).go();
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->ended_early());
  EXPECT_EQ(report->runs.size(), 1u) << "there is no second run on a full pool";
  EXPECT_EQ(exit_code_of(*report), ExitCode::resources);
  EXPECT_NE(report->text().find("the volatile pool of node"), std::string::npos);
  EXPECT_TRUE(report->violations.empty()) << report->violations.front();
}

/// Snapshots are taken constantly. The conditions hold on recovered data, and while pages are
/// copied up from snapshots one by one.
TEST(TpccRecovery, TheConditionsHoldOverRestartsWhileSnapshotsAreTaken) {
  const test::TestFolder folder;
  Config config = config_of(folder, {LaunchMode::process, 2, 2, 1});
  config.gleaner.interval = std::chrono::milliseconds(100);
  Options options = options_of(1);
  options.remote_payment_percent = 15;
  uint64_t newest = 0;
  for (int start = 0; start < 3; ++start) {
    SCOPED_TRACE("start " + std::to_string(start));
    auto cluster = Cluster::launch(config, LaunchMode::process, ATOLL_BIN_DIR);
    ASSERT_TRUE(cluster.has_value()) << cluster.error().message;
    cli::BenchPort port(**cluster);
    Driver driver(port, options, 4, kSilent);
    expect_consistent(start == 0 ? driver.go() : driver.resume());
    const auto status = cli::RunningCluster(config).coordinator(ControlOperation::status, {},
                                                                Cluster::kDefaultTimeout);
    ASSERT_TRUE(status) << status.error().message;
    const uint64_t snapshot = status->at("snapshots").at("newest");
    EXPECT_GT(snapshot, newest);
    newest = snapshot;
    const Result<void> stopped = (*cluster)->shutdown();
    EXPECT_TRUE(stopped.has_value()) << stopped.error().message;
  }
}

}  // namespace
}  // namespace atolldb::tpcc
