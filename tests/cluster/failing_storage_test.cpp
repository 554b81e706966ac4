// Failing storage with real processes. The cluster stops acknowledging, and ends with the exit code
// of the cause. It keeps everything promised, and starts again when the cause is gone.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <tuple>

#include "shared/kv/kv_request.h"
#include "shared/message/control_client.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"

namespace atolldb::test {
namespace {

/// An in-memory file system, unmounted by the destructor.
class SmallMount {
 public:
  SmallMount(std::string path, const char* size) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    const std::string options = std::string("size=") + size;
    if (mount("tmpfs", path_.c_str(), "tmpfs", 0, options.c_str()) != 0) error_ = errno;
  }
  ~SmallMount() {
    if (error_ == 0) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallMount(const SmallMount&) = delete;
  SmallMount& operator=(const SmallMount&) = delete;

  int error() const { return error_; }
  bool resize(const char* size) const {
    const std::string options = std::string("size=") + size;
    return mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT, options.c_str()) == 0;
  }

 private:
  std::string path_;
  int error_ = 0;
};

class FailingClusters {
 protected:
  Config durable(const std::string& name, DurabilityScheme scheme) const {
    Config config = folder_.config(name);
    config.durability.mode = DurabilityMode::durable;
    config.durability.scheme = scheme;
    // Checkpoints would delete log that a test reads.
    config.durability.checkpoint_interval = std::chrono::milliseconds(0);
    return config;
  }

  /// Makes the system call `call` of the process fail with `error` from now on. Returns the
  /// tracer's pid, or 0 if no tracer can attach here.
  pid_t inject(const Config& config, const std::string& role, const std::string& call,
               const std::string& error) {
    const std::string traced = std::to_string(processes_of(config.cluster.name, role).at(0));
    const pid_t tracer = runner_.start(
        "/usr/bin/strace",
        {"-f", "-e", "trace=" + call, "-e", fmt::format("inject={}:error={}", call, error), "-o",
         "/dev/null", "-p", traced},
        folder_.path() + "/strace.out", told_path());
    int status = 0;
    const bool has_come = eventually(
        [&] { return told().contains("attached") || waitpid(tracer, &status, WNOHANG) == tracer; });
    return has_come && told().contains("attached") ? tracer : 0;
  }
  std::string told_path() const { return folder_.path() + "/strace.err"; }
  std::string told() const { return read_text(told_path()); }

  /// Checks that the cluster has failed by itself with this code, that all outputs report it, and
  /// that no promise is broken.
  void expect_failed(const Config& config, LauncherProcess& launcher, LedgerClients& clients,
                     int code) {
    const int status = launcher.wait();
    clients.join();
    const std::string message = last_failure(config);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), code) << message;
    EXPECT_FALSE(message.empty());
    expect_file_named(config, code);
    EXPECT_TRUE(eventually([&] { return processes_of(config.cluster.name).empty(); }));
    const std::string file = folder_.path() + "/status.toml";
    std::ofstream(file) << to_toml(config);
    const Ran asked = runner_.atoll({"status", "-c", file});
    EXPECT_NE(asked.code, 0);
    EXPECT_NE((asked.out + asked.error).find(message), std::string::npos)
        << asked.out << asked.error;
    EXPECT_GT(expect_log_keeps(config, clients.ledger()), 0u);
    const Ran verified = runner_.atoll({"wal", "verify", "--data-dir", config.cluster.data_dir});
    EXPECT_EQ(verified.code, 0) << verified.out << verified.error;
  }

  /// Checks that the failure file and the message name the failed file and its error.
  static void expect_file_named(const Config& config, int code) {
    const auto note = nlohmann::json::parse(read_text(last_failure_path(config)), nullptr, false);
    const std::string file = note.value("file", "");
    const std::string message = note.value("message", "");
    const int number = note.value("errno", 0);
    EXPECT_EQ(number, code == 10 ? ENOSPC : EIO) << note.dump();
    EXPECT_NE(message.find(std::strerror(number)), std::string::npos) << message;
    EXPECT_NE(message.find(file), std::string::npos) << message;
    EXPECT_EQ(message.find("see the log of"), std::string::npos) << message;
    bool is_own = file.starts_with(config.cluster.data_dir + "/");
    for (const std::string& directory : node_directories(config)) {
      is_own = is_own || file.starts_with(directory + "/");
    }
    EXPECT_TRUE(is_own) << note.dump();
  }

  static void expect_starts(const Config& config) {
    LauncherProcess next(config, true);
    EXPECT_EQ(next.next_line(), "running");
    const auto created = create_ledger(config);
    EXPECT_TRUE(created) << created.error().message;
    kill(next.pid(), SIGTERM);
    EXPECT_EQ(next.wait(), 0);
  }

  TestFolder folder_;
  CliRunner runner_{folder_};
};

class FailingStorage : public FailingClusters, public testing::TestWithParam<DurabilityScheme> {
 protected:
  Config durable(const std::string& name) const {
    return FailingClusters::durable(name, GetParam());
  }
  static bool has_checkpoints() { return GetParam() == DurabilityScheme::silor; }
};

INSTANTIATE_TEST_SUITE_P(Schemes, FailingStorage,
                         testing::Values(DurabilityScheme::gleaned, DurabilityScheme::silor),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(FailingStorage, AFullFileSystemEndsTheClusterWithCode10AndNothingIsLost) {
  const SmallMount small(folder_.path() + "/small", "6m");
  if (small.error() != 0) {
    GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::strerror(small.error());
  }
  Config config = durable("full");
  config.nodes[1].directories = {folder_.path() + "/small"};
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  ASSERT_TRUE(create_ledger(config));
  // Exactly two more log files fit, so a snapshot finds no space, and no log file can be deleted.
  const std::string disk = folder_.path() + "/small";
  const uint64_t free = std::filesystem::space(disk).available;
  ASSERT_GT(free, 2 * config.durability.log_file_size);
  std::ofstream(disk + "/filler") << std::string(free - 2 * config.durability.log_file_size, 'x');
  LedgerClients clients(config, folder_.path(), seed());
  expect_failed(config, launcher, clients, 10);
  ASSERT_TRUE(small.resize("64m"));
  expect_starts(config);
}

TEST_P(FailingStorage, SnapshotsAndCheckpointsLeaveTheLogItsReserveAndTheClusterGoesOn) {
  const std::string disk = folder_.path() + "/small";
  const SmallMount small(disk, "64m");
  if (small.error() != 0) {
    GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::strerror(small.error());
  }
  Config config = durable("reserve");
  config.nodes[1].directories = {disk};
  config.gleaner.interval = std::chrono::hours(1);  // only the test takes snapshots
  config.gleaner.disk_reserve = uint64_t{32} << 20;
  const std::string file = folder_.path() + "/reserve.toml";
  std::ofstream(file) << to_toml(config);
  const auto fill = [&] { std::ofstream(disk + "/filler") << std::string(48u << 20, 'x'); };
  uint64_t commits = 0;
  const auto commit = [&] {
    auto session = SessionClient::connect(config.cluster.run_dir, 1);
    ASSERT_TRUE(session) << session.error().message;
    KvRequest request;
    const uint64_t key = ++commits;
    request.put(kLedgerStorage, ordered_index_key(key), std::as_bytes(std::span(&key, 1)));
    const SessionReply reply = (*session)->call("kv.txn", request.bytes());
    EXPECT_EQ(reply.status, Status::ok) << reply.message;
  };
  const auto take = [&](int code) {
    commit();
    const Ran ran =
        runner_.atoll({has_checkpoints() ? "checkpoint" : "snapshot", "take", "-c", file});
    EXPECT_EQ(ran.code, code) << ran.out << ran.error;
    return ran.error;
  };
  {
    LauncherProcess launcher(config);
    ASSERT_EQ(launcher.next_line(), "running");
    ASSERT_TRUE(create_ledger(config));
    take(0);
    fill();
    const std::string message = take(10);
    EXPECT_NE(message.find(disk), std::string::npos) << message;
    EXPECT_NE(message.find("lower gleaner.disk_reserve"), std::string::npos) << message;
    const Ran status = runner_.atoll({"status", "-c", file});
    EXPECT_EQ(status.code, 0) << status.error;
    const std::string failed = has_checkpoints() ? "checkpoint failed" : "snapshot failed";
    EXPECT_NE(status.out.find("what is wrong: the last " + failed), std::string::npos)
        << status.out;
    std::filesystem::remove(disk + "/filler");
    take(0);
    fill();
    commit();
    kill(launcher.pid(), SIGKILL);
    launcher.wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config.cluster.name).empty(); }));
  }
  // A start-up needs its snapshot, so that snapshot may also use the reserve. With checkpoints a
  // start-up writes none.
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  take(10);
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

struct Fault {
  const char* name;
  const char* call;
  const char* error;
  int code;
};

using FaultAndScheme = std::tuple<Fault, DurabilityScheme>;

class InjectedFault : public FailingClusters, public testing::TestWithParam<FaultAndScheme> {};

TEST_P(InjectedFault, EndsTheClusterWithItsCodeAndNothingIsLost) {
  const auto& [fault, scheme] = GetParam();
  const Config config = durable("fault", scheme);
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  ASSERT_TRUE(create_ledger(config));
  LedgerClients clients(config, folder_.path(), seed());
  ASSERT_TRUE(eventually([&] { return clients.has_written(1, 10'000); }));
  const pid_t tracer = inject(config, "node1", fault.call, fault.error);
  if (tracer == 0) GTEST_SKIP() << "strace cannot attach to a process here: " << told();
  expect_failed(config, launcher, clients, fault.code);
  reap(tracer);  // the tracer ends with the process that it traces
  expect_starts(config);
}

INSTANTIATE_TEST_SUITE_P(
    Node1, InjectedFault,
    testing::Combine(testing::Values(Fault{"ASyncThatFails", "fdatasync", "EIO", 8},
                                     Fault{"AWriteThatFails", "pwritev", "EIO", 8},
                                     Fault{"AWriteWithoutRoom", "pwritev", "ENOSPC", 10},
                                     Fault{"AFileWithoutRoom", "fallocate", "ENOSPC", 10}),
                     testing::Values(DurabilityScheme::gleaned, DurabilityScheme::silor)),
    [](const auto& tested) {
      return fmt::format("{}_{}", std::get<0>(tested.param).name,
                         to_string(std::get<1>(tested.param)));
    });

/// If a creation cannot be made durable, the cluster acknowledges neither it nor anything later.
TEST_P(FailingStorage, ADdlLogThatCannotBeSyncedEndsTheClusterWithCode8) {
  const Config config = durable("ddl");
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  ASSERT_TRUE(create_ledger(config));
  LedgerClients clients(config, folder_.path(), seed());
  // Waits until the clients have acknowledged commits, which could be lost.
  constexpr uint64_t kSomeBytes = 10'000;
  ASSERT_TRUE(eventually([&] { return clients.has_written(0, kSomeBytes); }));
  const pid_t tracer = inject(config, "coordinator", "fdatasync", "EIO");
  if (tracer == 0) GTEST_SKIP() << "strace cannot attach to a process here: " << told();
  const ControlClient coordinator(config.control.endpoint);
  const auto created =
      coordinator.call(ControlOperation::storage_create, {{"name", "late"}, {"type", "mastertree"}},
                       std::chrono::milliseconds(1'000));
  EXPECT_FALSE(created);  // the answer may be lost with the coordinator
  expect_failed(config, launcher, clients, 8);
  EXPECT_TRUE(last_failure(config).contains("/coordinator/ddl_000000.atlog"))
      << last_failure(config);
  reap(tracer);
  expect_starts(config);
}

/// If the savepoint cannot be written, there is no new snapshot or checkpoint. The previous one is
/// kept, and the log continues.
TEST_P(FailingStorage, ASavepointThatCannotBeSyncedCostsASnapshotOrACheckpointAndNoMore) {
  const Config config = durable("savepoint");
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  ASSERT_TRUE(create_ledger(config));
  LedgerClients clients(config, folder_.path(), seed());
  const ControlClient coordinator(config.control.endpoint);
  const auto take = [&] {
    return coordinator.call(
        has_checkpoints() ? ControlOperation::checkpoint_take : ControlOperation::snapshot_take,
        Json::object(), std::chrono::milliseconds(30'000));
  };
  ASSERT_TRUE(eventually([&] { return clients.has_written(1, 10'000); }));
  const pid_t tracer = inject(config, "coordinator", "fdatasync", "EIO");
  if (tracer == 0) GTEST_SKIP() << "strace cannot attach to a process here: " << told();
  const auto failed = take();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ExitCode::durability) << failed.error().message;
  EXPECT_TRUE(failed.error().message.contains("/coordinator/savepoint")) << failed.error().message;
  kill(tracer, SIGINT);  // the tracer detaches from the coordinator
  reap(tracer);
  const auto taken = take();
  EXPECT_TRUE(taken) << taken.error().message;
  clients.stop();
  kill(launcher.pid(), SIGKILL);
  launcher.wait();
  EXPECT_TRUE(eventually([&] { return processes_of(config.cluster.name).empty(); }));
  LauncherProcess next(config);
  ASSERT_EQ(next.next_line(), "running");
  auto session = SessionClient::connect(config.cluster.run_dir, 0);
  ASSERT_TRUE(session) << session.error().message;
  const auto state = read_ledger_state(**session);
  ASSERT_TRUE(state) << state.error().message;
  for (const LedgerViolation& one : check_ledger(clients.ledger(), *state)) {
    ADD_FAILURE() << one.text;
  }
  session->reset();
  kill(next.pid(), SIGTERM);
  EXPECT_EQ(next.wait(), 0);
}

}  // namespace
}  // namespace atolldb::test
