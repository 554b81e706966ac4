// Durability with real processes: the log has everything that clients were promised. Any process
// may be killed at any instant.
#include <gtest/gtest.h>

#include <random>

#include "ops/launcher/adopt_data.h"
#include "shared/file/posix_file_system.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"

namespace atolldb::test {
namespace {

class CrashTest : public testing::TestWithParam<DurabilityScheme> {
 protected:
  Config durable(const std::string& name) const {
    Config config = folder_.config(name);
    config.durability.mode = DurabilityMode::durable;
    config.durability.scheme = GetParam();
    // Checkpoints would delete log that the test reads.
    config.durability.checkpoint_interval = std::chrono::milliseconds(0);
    return config;
  }

  /// Waits until the cluster runs, and creates the ledger's storage. Expects no error.
  static void start(LauncherProcess& launcher, const Config& config) {
    const std::string line = launcher.next_line();
    ASSERT_EQ(line, "running");
    const auto created = create_ledger(config);
    ASSERT_TRUE(created) << created.error().message;
  }

  static void expect_dead(const Config& config) {
    EXPECT_TRUE(eventually([&] { return processes_of(config.cluster.name).empty(); }));
  }

  /// Returns exit code and message of a start-up without --discard-data that must be refused.
  static std::pair<int, std::string> refused_start(const Config& config) {
    LauncherProcess launcher(config);
    const std::string line = launcher.next_line();
    // If the start was not refused, stops the cluster. The caller then detects the wrong exit code.
    if (line == "running") kill(launcher.pid(), SIGTERM);
    return {WEXITSTATUS(launcher.wait()), line};
  }

  Ran verify(const Config& config) const {
    return runner_.atoll({"wal", "verify", "--data-dir", config.cluster.data_dir});
  }

  std::string ledger_folder() {
    const std::string path = folder_.path() + "/ledgers" + std::to_string(++ledgers_);
    std::filesystem::create_directories(path);
    return path;
  }

  /// Runs a cluster until the launcher is killed after some promises. Returns the clients' ledger.
  Ledger live_and_crash(const Config& config, bool discards_data = false) {
    LauncherProcess launcher(config, discards_data);
    start(launcher, config);
    if (HasFatalFailure()) return {};
    const std::string ledgers = ledger_folder();
    LedgerClients clients(config, ledgers, random_());
    EXPECT_TRUE(eventually([&] { return clients.has_written(1, 100'000); }));
    kill(launcher.pid(), SIGKILL);
    launcher.wait();
    clients.join();
    expect_dead(config);
    return clients.ledger();
  }

  TestFolder folder_;
  CliRunner runner_{folder_};
  std::mt19937_64 random_{seed()};
  int ledgers_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Schemes, CrashTest,
                         testing::Values(DurabilityScheme::gleaned, DurabilityScheme::silor),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(CrashTest, WhicheverProcessIsKilledAtAnyInstantEveryPromiseIsInTheLog) {
  const Config config = durable("crash");
  const std::vector<std::string> roles = {"node0", "node1", "coordinator", "launcher"};
  const uint64_t count = rounds(10, 200);
  uint64_t promised = 0;
  for (uint64_t round = 0; round < count; ++round) {
    const std::string& role = roles[random_() % roles.size()];
    const std::chrono::microseconds delay(random_() % 400'000);
    SCOPED_TRACE(fmt::format("round {}: {} after {} us", round, role, delay.count()));
    const std::string ledgers = ledger_folder();
    LauncherProcess launcher(config, round != 0);
    start(launcher, config);
    if (HasFatalFailure()) return;
    const auto found = processes_of(config.cluster.name, role);
    const pid_t victim = role == "launcher" ? launcher.pid() : found.at(0);
    LedgerClients clients(config, ledgers, random_());
    // this sleep does not synchronise: the instant is the test's input
    std::this_thread::sleep_for(delay);
    kill(victim, SIGKILL);
    launcher.wait();
    clients.join();
    expect_dead(config);
    promised += expect_log_keeps(config, clients.ledger());
    const Ran verified = verify(config);
    EXPECT_EQ(verified.code, 0) << verified.out << verified.error;
    if (HasFailure()) return;  // keep the data directory of the failed seed
    std::filesystem::remove_all(ledgers);
    for (const auto& entry : std::filesystem::directory_iterator(config.cluster.data_dir)) {
      if (entry.path().filename().string().starts_with("discarded-")) {
        std::filesystem::remove_all(entry.path());
      }
    }
  }
  std::printf("%llu promises kept\n", static_cast<unsigned long long>(promised));
  EXPECT_GT(promised, count * 10) << "next to nothing was promised: this has shown nothing";
}

TEST_P(CrashTest, ADiscardThatIsKilledIsFinishedByTheNextAndKeepsTheOldDataTogether) {
  const Config config = durable("discard");
  const auto count = rounds(5, 50);
  for (uint64_t round = 0; round < count; ++round) {
    live_and_crash(config, round != 0);
    if (HasFailure()) return;
    const std::chrono::microseconds delay(random_() % 60'000);
    SCOPED_TRACE(fmt::format("round {}: discard killed after {} us", round, delay.count()));
    LauncherProcess launcher(config, true);
    // this sleep does not synchronise: the instant is the test's input
    std::this_thread::sleep_for(delay);
    kill(launcher.pid(), SIGKILL);
    launcher.wait();
    expect_dead(config);
  }
  const Ledger ledger = live_and_crash(config, true);
  EXPECT_GT(expect_log_keeps(config, ledger), 0u);
  for (const auto& entry : std::filesystem::directory_iterator(config.cluster.data_dir)) {
    if (!entry.path().filename().string().starts_with("discarded-")) continue;
    EXPECT_TRUE(std::filesystem::exists(entry.path() / "coordinator" / "savepoint"))
        << entry.path();
  }
}

TEST_P(CrashTest, ANodeThatWasStoppedIsDeadAtTheNextStartAndWritesNothing) {
  const Config config = durable("stopped");
  LauncherProcess launcher(config);
  start(launcher, config);
  if (HasFatalFailure()) return;
  const std::string ledgers = ledger_folder();
  LedgerClients clients(config, ledgers, random_());
  EXPECT_TRUE(eventually([&] { return clients.has_written(1, 10'000); }));
  const auto old_processes = processes_of(config.cluster.name);
  ASSERT_EQ(old_processes.size(), 3u);
  const pid_t stopped = processes_of(config.cluster.name, "node1").at(0);
  kill(stopped, SIGSTOP);
  kill(launcher.pid(), SIGKILL);
  launcher.wait();
  // Starts at once, while processes of the old incarnation may still be ending.
  LauncherProcess next(config, true);
  EXPECT_EQ(next.next_line(), "running");
  for (const pid_t pid : old_processes) {
    EXPECT_FALSE(find_process(pid)) << pid << " lives beside the next incarnation";
  }
  kill(stopped, SIGCONT);  // the process has ended, so this has no effect
  clients.join();
  const auto created = create_ledger(config);
  ASSERT_TRUE(created) << created.error().message;
  const std::string more = ledger_folder();
  LedgerClients others(config, more, random_());
  EXPECT_TRUE(eventually([&] { return others.has_written(1, 10'000); }));
  kill(next.pid(), SIGKILL);
  next.wait();
  others.join();
  expect_dead(config);
  EXPECT_GT(expect_log_keeps(config, others.ledger()), 0u);
}

TEST_P(CrashTest, LoggersMayChangeBetweenIncarnations) {
  Config config = durable("loggers");
  const auto shape = [&](uint32_t loggers, std::vector<std::string> directories) {
    for (NodeConfig& node : config.nodes) {
      node.workers = 3;
      node.running_workers = 2;
      node.loggers = loggers;
      node.directories = directories;
    }
  };
  const std::string fast = folder_.path() + "/fast";
  const std::vector<std::pair<uint32_t, std::vector<std::string>>> shapes = {
      {2, {}}, {3, {fast + "1", fast + "2"}}, {1, {fast + "2"}}, {2, {fast + "3"}}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    SCOPED_TRACE("incarnation " + std::to_string(i));
    shape(shapes[i].first, shapes[i].second);
    LauncherProcess launcher(config);
    ASSERT_EQ(launcher.next_line(), "running");
    kill(launcher.pid(), i % 2 == 0 ? SIGKILL : SIGTERM);
    launcher.wait();
    expect_dead(config);
  }
  const Ledger ledger = live_and_crash(config);
  EXPECT_GT(expect_log_keeps(config, ledger), 0u);
  shape(1, {});  // the config no longer names the log directories, only the savepoint does
  EXPECT_GT(expect_log_keeps(config, ledger), 0u);
  const Ran verified = verify(config);
  EXPECT_EQ(verified.code, 0) << verified.out << verified.error;
  EXPECT_NE(verified.out.find(fast + "3/node1/"), std::string::npos) << verified.out;
}

TEST_P(CrashTest, AMissingLogDirectoryIsRefusedAndNamedUntilItIsGivenUp) {
  Config config = durable("missing");
  config.nodes[1].directories = {folder_.path() + "/fast"};
  live_and_crash(config);
  std::filesystem::remove_all(folder_.path() + "/fast");
  const auto [code, message] = refused_start(config);
  EXPECT_EQ(code, 11) << message;  // identity error: the file system may only be unmounted (R47)
  EXPECT_NE(message.find(folder_.path() + "/fast"), std::string::npos) << message;
  const Ran verified = verify(config);
  EXPECT_EQ(verified.code, 7) << verified.out;
  EXPECT_NE(verified.error.find(folder_.path() + "/fast/node1/log_"), std::string::npos)
      << verified.error;
  PosixFileSystem files;
  const auto adopted = adopt_data(config, AdoptionKind::moved, files);
  EXPECT_TRUE(adopted) << adopted.error().message;
  LauncherProcess next(config, true);
  EXPECT_EQ(next.next_line(), "running");
}

TEST_P(CrashTest, EpochsBeyond32BitsSurvive) {
  Config config = durable("late");
  config.cluster.start_epoch = (uint64_t{1} << 32) + 5;
  const Ledger ledger = live_and_crash(config);
  EXPECT_GT(expect_log_keeps(config, ledger), 0u);
  const auto log = read_dead_log(config);
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_GE(log->scan.cut_epoch, config.cluster.start_epoch);
}

TEST_P(CrashTest, StoragesThatWereCreatedAreThereAfterAKillAndTheirIdsStayTheirs) {
  const Config config = durable("ddl");
  uint32_t last_id = 0;
  for (int life = 0; life < 3; ++life) {
    LauncherProcess launcher(config);
    ASSERT_EQ(launcher.next_line(), "running");
    cli::RunningCluster cluster(config);
    for (int i = 0; i < life; ++i) {
      const auto again = cluster.create_storage("of" + std::to_string(i), StorageType::sequential);
      EXPECT_FALSE(again) << "the storage of life " << i << " was forgotten (R34)";
    }
    const auto dropped = cluster.create_storage("dropped", StorageType::mastertree);
    ASSERT_TRUE(dropped) << dropped.error().message;
    EXPECT_GT(*dropped, last_id) << "an id was given again";
    ASSERT_TRUE(cluster.drop_storage("dropped"));
    const auto id = cluster.create_storage("of" + std::to_string(life), StorageType::array, 8, 100);
    ASSERT_TRUE(id) << id.error().message;
    last_id = *id;
    kill(launcher.pid(), SIGKILL);
    launcher.wait();
    expect_dead(config);
  }
}

TEST_P(CrashTest, TheLogOfALiveClusterVerifiesAndAFlippedBitIsNamed) {
  const Config config = durable("verify");
  LauncherProcess launcher(config);
  start(launcher, config);
  if (HasFatalFailure()) return;
  LedgerClients clients(config, ledger_folder(), random_());
  for (uint64_t i = 0; i < rounds(20, 200); ++i) {
    const Ran verified = verify(config);
    ASSERT_EQ(verified.code, 0) << verified.out << verified.error;
  }
  kill(launcher.pid(), SIGKILL);
  launcher.wait();
  clients.join();
  expect_dead(config);
  EXPECT_GT(expect_log_keeps(config, clients.ledger()), 0u);
  const auto log = read_dead_log(config);
  ASSERT_TRUE(log) << log.error().message;
  // Chooses any block of records that is known to be durable, and damages it below.
  std::vector<std::pair<std::string, uint64_t>> places;
  PosixFileSystem files;
  for (const LogScan& one : log->scan.logs) {
    const auto scanned = scan_log(
        files, one.stream, [&](const LogBlock& block, const std::string& file, uint64_t offset) {
          if (block.header.type == LogBlockType::records &&
              block.header.epoch <= log->scan.known_durable_epoch) {
            places.emplace_back(file, offset);
          }
        });
    ASSERT_TRUE(scanned);
  }
  ASSERT_FALSE(places.empty());
  const auto [path, offset] = places[random_() % places.size()];
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto byte = static_cast<std::streamoff>(offset + sizeof(LogBlockHeader) + 9);
    file.seekg(byte);
    const auto old = static_cast<char>(file.get());
    file.seekp(byte);
    file.put(static_cast<char>(old ^ 4));
  }
  const Ran verified = verify(config);
  EXPECT_EQ(verified.code, 7) << verified.out;
  const std::string place = path + ": offset " + std::to_string(offset);
  EXPECT_NE(verified.error.find(place), std::string::npos) << place << "\n" << verified.error;
  const auto [code, message] = refused_start(config);
  EXPECT_EQ(code, 7) << message;
  EXPECT_NE(message.find(place), std::string::npos) << message;
}

}  // namespace
}  // namespace atolldb::test
