// Storms: kill -9 and SIGSTOP hit a loaded cluster at random instants, while snapshots or
// checkpoints are taken, and storages are created and dropped. After each storm, the next start-up
// must have everything acknowledged. The consistency conditions of TPC-C must hold.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

#include "bench/tpcc_driver/driver.h"
#include "ops/cli/bench_cluster.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"

namespace atolldb::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr tpcc::Scale kStormScale{.items = 200, .customers = 30, .new_orders = 9, .last_names = 10};
constexpr uint32_t kWarehouses = 2;

/// Answers that a client of storage.create and storage.drop got, over all storms.
struct DdlLedger {
  std::set<std::string> created;    // acknowledged, and no drop was requested
  std::set<std::string> dropped;    // the drop was acknowledged
  std::set<std::string> uncertain;  // the answer to a creation or drop is missing
  std::map<std::string, uint64_t> ids;
  uint64_t next = 0;
};

/// Creates and drops storages until the cluster ends.
class DdlClient {
 public:
  DdlClient(const Config& config, DdlLedger& ledger, uint64_t seed)
      : thread_([config, &ledger, seed] { run(config, ledger, seed); }) {}
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  static void run(const Config& config, DdlLedger& ledger, uint64_t seed) {
    std::mt19937_64 random(seed);
    cli::RunningCluster cluster(config);
    constexpr size_t kMost = 12;
    while (true) {
      const bool drops =
          !ledger.created.empty() && (ledger.created.size() >= kMost || random() % 2 == 0);
      if (drops) {
        const std::string name = *std::next(
            ledger.created.begin(), static_cast<ptrdiff_t>(random() % ledger.created.size()));
        ledger.created.erase(name);
        ledger.uncertain.insert(name);
        if (!cluster.drop_storage(name)) return;
        ledger.uncertain.erase(name);
        ledger.dropped.insert(name);
      } else {
        const std::string name = fmt::format("storm-{}", ledger.next++);
        ledger.uncertain.insert(name);
        const auto id = cluster.create_storage(name, StorageType::mastertree, 8);
        if (!id) return;
        ledger.uncertain.erase(name);
        ledger.created.insert(name);
        ledger.ids[name] = *id;
      }
    }
  }
  std::jthread thread_;
};

class StormTest : public testing::TestWithParam<DurabilityScheme> {
 protected:
  StormTest() {
    config_.memory.volatile_pool = uint64_t{64} << 20;
    config_.gleaner.interval = milliseconds(100);
    config_.durability.scheme = GetParam();
    // With checkpoints all data must fit into the pools, and TPC-C adds to them in every storm.
    if (has_checkpoints()) config_.memory.volatile_pool = uint64_t{1} << 30;
    config_.durability.checkpoint_interval = milliseconds(100);
    config_.cluster.hang_limit = milliseconds(3000);
    options_.scale = kStormScale;
    options_.seconds = 3600;  // the storm ends the run earlier
    options_.warmup_seconds = 0;
    options_.seed = random_();
    std::filesystem::create_directories(ledgers_);
  }

  static bool has_checkpoints() { return GetParam() == DurabilityScheme::silor; }

  std::vector<std::string> roles() const { return {"launcher", "coordinator", "node0", "node1"}; }

  pid_t pid_of(const LauncherProcess& launcher, const std::string& role) const {
    if (role == "launcher") return launcher.pid();
    const std::vector<pid_t> found = processes_of(config_.cluster.name, role);
    return found.empty() ? 0 : found.front();
  }

  /// Sends one to three signals at random instants. The last one is SIGKILL.
  void strike(const LauncherProcess& launcher) {
    const uint64_t signals = 1 + random_() % 3;
    for (uint64_t i = 0; i < signals; ++i) {
      // the instant is the test's input
      std::this_thread::sleep_for(milliseconds(random_() % 500));
      const std::string role = roles()[random_() % 4];
      const pid_t pid = pid_of(launcher, role);
      if (pid == 0) return;
      const bool is_last = i + 1 == signals;
      std::printf("  %s of %s\n", is_last ? "SIGKILL" : "SIGSTOP", role.c_str());
      kill(pid, is_last ? SIGKILL : SIGSTOP);
      if (is_last) break;
      // the duration is the test's input
      std::this_thread::sleep_for(milliseconds(random_() % 1000));
      if (random_() % 2 == 0) kill(pid, SIGCONT);
    }
  }

  /// Waits until the launcher and all other processes have ended, also the stopped ones.
  void await_end(LauncherProcess& launcher) {
    kill(launcher.pid(), SIGCONT);
    launcher.wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
    EXPECT_EQ(open_segments(), 0u);
  }

  /// Checks that created storages exist, that dropped storages do not, and that no id was used
  /// twice.
  void expect_catalog_kept() {
    const auto listed = cli::RunningCluster(config_).coordinator(ControlOperation::storage_list, {},
                                                                 Cluster::kDefaultTimeout);
    ASSERT_TRUE(listed) << listed.error().message;
    std::map<std::string, uint64_t> found;
    for (const Json& storage : listed->at("storages")) {
      const std::string name = storage.at("name");
      found[name] = storage.at("id");
      const auto known = ddl_.ids.find(name);
      if (known != ddl_.ids.end()) {
        EXPECT_EQ(known->second, found[name]) << name;
      }
    }
    for (const std::string& name : ddl_.created) EXPECT_TRUE(found.contains(name)) << name;
    for (const std::string& name : ddl_.dropped) EXPECT_FALSE(found.contains(name)) << name;
    for (const std::string& name : ddl_.uncertain) {
      if (!found.contains(name)) continue;
      ddl_.created.insert(name);
      ddl_.ids[name] = found[name];
    }
    ddl_.uncertain.clear();
    std::set<uint64_t> ids;
    for (const auto& [name, id] : ddl_.ids) EXPECT_TRUE(ids.insert(id).second) << name;
  }

  void expect_tpcc_consistent() const {
    cli::RunningCluster cluster(config_);
    cli::BenchPort port(cluster);
    tpcc::Options options = options_;
    options.repeat = 0;  // no run, only the verification
    tpcc::Driver driver(port, options, kWarehouses, silent_);
    const auto report = driver.resume();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->verify_done);
    EXPECT_EQ(report->violations, std::vector<std::string>{});
  }

  /// Runs TPC-C until the cluster ends.
  std::jthread run_tpcc() const {
    return std::jthread([this] {
      cli::RunningCluster cluster(config_);
      cli::BenchPort port(cluster);
      tpcc::Options options = options_;
      options.repeat = 1;
      tpcc::Driver driver(port, options, kWarehouses, silent_);
      EXPECT_FALSE(driver.resume());
    });
  }

  void prepare() {
    const auto created = create_ledger(config_);
    ASSERT_TRUE(created) << created.error().message;
    cli::RunningCluster cluster(config_);
    cli::BenchPort port(cluster);
    tpcc::Driver driver(port, options_, kWarehouses, silent_);
    const auto loaded = driver.load_database();
    ASSERT_TRUE(loaded) << loaded.error().message;
  }

  const bench::Console silent_{[](const std::string&) {}, [](const std::string&) {}};
  TestFolder folder_;
  Config config_ = folder_.config("storm", 2, 2);
  std::string ledgers_ = folder_.path() + "/ledgers";
  std::mt19937_64 random_{seed()};
  tpcc::Options options_;
  Ledger ledger_;  // of all storms
  DdlLedger ddl_;
};

INSTANTIATE_TEST_SUITE_P(Schemes, StormTest,
                         testing::Values(DurabilityScheme::gleaned, DurabilityScheme::silor),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(StormTest, NothingAcknowledgedIsLostAndNothingIsLeft) {
  // With checkpoints the pools have no room for the data of many storms.
  const uint64_t count = has_checkpoints() ? rounds(4, 6) : rounds(4, 200);
  for (uint64_t round = 0; round <= count; ++round) {
    SCOPED_TRACE(fmt::format("storm {}", round));
    std::printf("storm %llu\n", static_cast<unsigned long long>(round));
    // In every second storm, one worker of a node waits while the other one runs (RunGate).
    for (NodeConfig& node : config_.nodes) node.running_workers = 1 + round % 2;
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running");
    if (round == 0) {
      ASSERT_NO_FATAL_FAILURE(prepare());
    }
    ASSERT_NO_FATAL_FAILURE(expect_promises_kept(config_, ledger_));
    ASSERT_NO_FATAL_FAILURE(expect_catalog_kept());
    ASSERT_NO_FATAL_FAILURE(expect_tpcc_consistent());
    ASSERT_FALSE(HasFailure()) << "stopped: the data are in " << config_.cluster.data_dir;
    if (round == count) {
      kill(launcher.pid(), SIGTERM);
      EXPECT_EQ(launcher.wait(), 0);
      EXPECT_FALSE(std::filesystem::exists(config_.cluster.run_dir));
      break;
    }
    LedgerClients clients(config_, ledgers_, random_());
    DdlClient ddl(config_, ddl_, random_());
    std::jthread load = run_tpcc();
    strike(launcher);
    await_end(launcher);
    ddl.join();
    load.join();
    clients.join();
    ledger_ = clients.ledger();
  }
}

}  // namespace
}  // namespace atolldb::test
