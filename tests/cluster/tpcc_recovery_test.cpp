// TPC-C across restarts, with snapshots taken constantly. Its consistency conditions hold on
// recovered data, and while pages are copied up from snapshots one by one.
#include <gtest/gtest.h>

#include "bench/tpcc_driver/driver.h"
#include "ops/cli/bench_cluster.h"
#include "ops/cli/running_cluster.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb::tpcc {
namespace {

constexpr Scale kSmallScale{.items = 1'000, .customers = 60, .new_orders = 18, .last_names = 20};

void expect_consistent(const Result<Report>& report) {
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->verify_done);
  EXPECT_EQ(report->violations, std::vector<std::string>{});
  EXPECT_EQ(exit_code_of(*report), ExitCode::success) << report->text();
  EXPECT_GT(report->median_tps(), 0.0);
}

TEST(TpccRecovery, TheConditionsHoldOverRestartsWhileSnapshotsAreTaken) {
  const test::TestFolder folder;
  Config config = folder.config("tpcc", 2, 2);
  config.memory.volatile_pool = uint64_t{256} << 20;
  config.gleaner.interval = std::chrono::milliseconds(100);
  Options options;
  options.scale = kSmallScale;
  options.seconds = 1;
  options.warmup_seconds = 0;
  options.seed = test::seed();
  const Console silent{[](const std::string&) {}, [](const std::string&) {}};
  uint64_t newest = 0;
  for (int start = 0; start < 3; ++start) {
    SCOPED_TRACE("start " + std::to_string(start));
    auto cluster = Cluster::launch(config, LaunchMode::process, ATOLL_BIN_DIR);
    ASSERT_TRUE(cluster.has_value()) << cluster.error().message;
    cli::BenchPort port(**cluster);
    Driver driver(port, options, 4, silent);
    expect_consistent(start == 0 ? driver.go() : driver.resume());
    const auto status =
        cli::RunningCluster(config).coordinator("status", {}, Cluster::kDefaultTimeout);
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
