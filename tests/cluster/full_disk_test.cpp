// Starts on a file system that is nearly full, or that the cluster's own logs have filled (R54). A
// failed start-up leaves no files, and no acknowledged commit is lost.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>

#include "coordinator/durability/disk_room.h"
#include "engine/gleaner/sorted_run.h"
#include "engine/log/log_files.h"
#include "engine/snapshot/stored_snapshots.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "shared/message/control_client.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// Rows of 200 bytes, each written twice, so that pages take about half the space of their log.
class Rows {
 public:
  /// Writes another hundred rows. Returns false if the cluster has ended.
  bool write(SessionClient& session) {
    KvRequest request;
    for (uint64_t key = rows_; key < rows_ + kBatch; ++key) {
      const auto value = value_of(key);
      request.put("rows", ordered_index_key(key), std::as_bytes(std::span(value)));
    }
    if (session.call("kv.txn", request.bytes()).status != Status::ok) return false;
    rows_ += kBatch;
    return session.call("kv.txn", request.bytes()).status == Status::ok;
  }
  uint64_t acknowledged() const { return rows_; }

  /// Returns the first row that is missing or wrong, or an empty text.
  std::string check(SessionClient& session) const {
    for (uint64_t key = 0; key < rows_; key += kBatch) {
      KvRequest request;
      for (uint64_t i = 0; i < kBatch; ++i) request.get("rows", ordered_index_key(key + i));
      const SessionReply reply = session.call("kv.txn", request.bytes());
      if (reply.status != Status::ok) return reply.message;
      const auto results = read_kv_reply(reply.output, request.bytes());
      if (!results || results->size() != kBatch) return "a reply cannot be read";
      for (uint64_t i = 0; i < kBatch; ++i) {
        const auto expected = value_of(key + i);
        const auto bytes = std::as_bytes(std::span(expected));
        if (!std::ranges::equal((*results)[i].value, bytes)) return fmt::format("row {}", key + i);
      }
    }
    return "";
  }

 private:
  static constexpr uint64_t kBatch = 100;

  static std::array<uint64_t, 25> value_of(uint64_t key) {
    std::array<uint64_t, 25> value{};
    value.fill(key * 0x9e3779b97f4a7c15 + 1);
    return value;
  }
  uint64_t rows_ = 0;
};

/// A cluster whose data is in a small in-memory file system.
class FullDisk : public testing::Test {
 protected:
  FullDisk() {
    config_.cluster.data_dir = disk_ + "/data";
    config_.gleaner.interval = std::chrono::hours(1);  // so that only the log fills the disk
    config_.gleaner.log_volume = uint64_t{1} << 30;
    config_.cluster.restart = RestartPolicy::never;
    std::filesystem::create_directories(disk_);
  }
  ~FullDisk() override {
    if (is_mounted_) umount2(disk_.c_str(), MNT_DETACH);
  }
  bool mount_disk(uint64_t mib) {
    const std::string options = fmt::format("size={}m", mib);
    is_mounted_ = mount("tmpfs", disk_.c_str(), "tmpfs", 0, options.c_str()) == 0;
    return is_mounted_;
  }
  void resize_disk(uint64_t mib) {
    const std::string options = fmt::format("size={}m", mib);
    ASSERT_EQ(mount("tmpfs", disk_.c_str(), "tmpfs", MS_REMOUNT, options.c_str()), 0);
  }
  uint64_t free_bytes() const {
    struct statvfs info{};
    EXPECT_EQ(statvfs(disk_.c_str(), &info), 0);
    return info.f_bavail * info.f_frsize;
  }
  uint64_t used_bytes() const {
    struct statvfs info{};
    EXPECT_EQ(statvfs(disk_.c_str(), &info), 0);
    return (info.f_blocks - info.f_bfree) * info.f_frsize;
  }
  /// Fills the disk until `free` bytes are free.
  void fill_up_to(uint64_t free) const {
    const uint64_t now = free_bytes();
    ASSERT_GT(now, free);
    std::ofstream(disk_ + "/filler") << std::string(now - free, 'x');
  }

  void create_rows() const {
    const ControlClient coordinator(config_.control.endpoint);
    const auto created =
        coordinator.call(ControlOperation::storage_create,
                         {{"name", "rows"}, {"type", "mastertree"}}, Cluster::kDefaultTimeout);
    ASSERT_TRUE(created) << created.error().message;
  }
  void kill_all(LauncherProcess& launcher) {
    kill(launcher.pid(), SIGKILL);
    launcher.wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }
  std::set<uint32_t> snapshots_there() const {
    PosixFileSystem files;
    const std::string& data_dir = config_.cluster.data_dir;
    const auto stored = snapshot_files_in(files, data_dir, {data_dir});
    EXPECT_TRUE(stored) << stored.error().message;
    std::set<uint32_t> ids;
    for (size_t i = 0; stored && i < stored->size(); ++i) ids.insert((*stored)[i].snapshot);
    return ids;
  }
  /// Maximum number of unneeded snapshots: that of the latest start, and the one before the newest
  /// snapshot, which the older slot of the savepoint may name.
  static constexpr size_t kUnneededSnapshots = 2;

  /// Checks that one start can have left all leftover logs, snapshots and sorted runs. Returns
  /// true if that start has left any.
  bool expect_leftovers_of_one_start() const {
    PosixFileSystem files;
    const std::string& data_dir = config_.cluster.data_dir;
    const auto logs = log_files_in(files, {data_dir});
    const auto savepoint = read_savepoint(files, data_dir);
    if (!logs || !savepoint || !*savepoint) {
      ADD_FAILURE() << "the data directory cannot be read";
      return false;
    }
    std::set<uint64_t> incarnations;
    for (const LogFilePlace& log : *logs) incarnations.insert(log.name.incarnation);
    EXPECT_LE(incarnations.size(), 2u) << "of the last one with commits, and of this start";
    std::set<uint32_t> unneeded = snapshots_there();
    if (const uint32_t newest = (*savepoint)->savepoint.snapshot; newest != 0) {
      const auto metadata = read_snapshot_metadata(files, data_dir, newest);
      EXPECT_TRUE(metadata) << metadata.error().message;
      if (metadata) {
        for (const SnapshotFilePlace& file : metadata->files) unneeded.erase(file.snapshot);
      }
    }
    EXPECT_LE(unneeded.size(), kUnneededSnapshots);
    std::set<uint32_t> runs;
    for (uint32_t node = 0; node < config_.nodes.size(); ++node) {
      const auto names = list_sorted_runs(files, data_dir, node);
      EXPECT_TRUE(names);
      for (const std::string& name : names.value_or(std::vector<std::string>())) {
        runs.insert(parse_sorted_run_name(name)->snapshot);
      }
    }
    EXPECT_LE(runs.size(), 1u);
    return !unneeded.empty() || !runs.empty();
  }
  static uint64_t promised(const Ledger& ledger) {
    uint64_t count = 0;
    for (const auto& [token, transaction] : ledger) {
      count += transaction.outcome && transaction.outcome->is_promised() ? 1 : 0;
    }
    return count;
  }

  TestFolder folder_;
  const std::string disk_ = folder_.path() + "/disk";
  Config config_ = folder_.config("full");
  bool is_mounted_ = false;
  std::mt19937_64 random_{seed()};
};

/// The tests of FullDisk on file systems that account for blocks in different ways.
/// They have snapshots, because they limit what recoveries write. With checkpoints a recovery
/// writes only its log (FullDiskOfLogs).
class FullFileSystem : public FullDisk, public testing::WithParamInterface<const char*> {
 protected:
  bool mount_kind(uint64_t mib) {
    if (std::string(GetParam()) == "tmpfs") return mount_disk(mib);
    const std::string image = folder_.path() + "/image";
    // Adds a few MiB for the tables and the journal of the file system itself.
    const std::string command =
        fmt::format("truncate -s {}M {} && mkfs.ext4 -q -F -m 0 {} && mount -o loop {} {}", mib + 4,
                    image, image, image, disk_);
    is_mounted_ = std::system((command + " >/dev/null 2>&1").c_str()) == 0;
    return is_mounted_;
  }
};

TEST_P(FullFileSystem,
       TenStartsThatAreKilledUseNoMoreRoomThanOneAndTheEleventhHasAllThatWasPromised) {
  if (!mount_kind(96)) GTEST_SKIP() << GetParam() << " cannot be mounted here";
  Ledger ledger;
  Rows rows;
  {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running");
    ASSERT_TRUE(create_ledger(config_));
    create_rows();
    auto session = SessionClient::connect(config_.cluster.run_dir, 0);
    ASSERT_TRUE(session) << session.error().message;
    while (rows.acknowledged() < 5'000) ASSERT_TRUE(rows.write(**session));
    session->reset();
    const std::string ledgers = folder_.path() + "/ledgers";
    std::filesystem::create_directories(ledgers);
    LedgerClients clients(config_, ledgers, random_());
    ASSERT_TRUE(eventually([&] { return clients.has_written(1, 100'000); }));
    kill_all(launcher);
    clients.join();
    ledger = clients.ledger();
  }
  ASSERT_GT(promised(ledger), 0u);
  // The device is so slow that most starts are killed during their recovery.
  config_.durability.emulated_latency = std::chrono::milliseconds(30);
  // With less space than a start-up needs, the start fails by itself with code 10.
  const uint64_t room = random_() % (random_() % 3 == 0 ? 16 * 1024 : 24 * kMiB);
  fill_up_to(room);
  // Room for the first log files, pages and sorted runs of one start. Starts may leave no more.
  const uint64_t limit = used_bytes() + 8 * kMiB;
  uint64_t full = 0;
  uint64_t leftovers = 0;
  const uint64_t count = rounds(10, 100);
  for (uint64_t round = 0; round < count; ++round) {
    const std::chrono::microseconds delay(random_() % 300'000);
    SCOPED_TRACE(fmt::format("start {} of {}, {} bytes free, killed after {} us", round, count,
                             room, delay.count()));
    const std::set<uint32_t> before = snapshots_there();
    LauncherProcess launcher(config_);
    if (random_() % 4 != 0) {
      // Waits until the start has created files of a snapshot, so that the kill below hits its
      // recovery, if it has one.
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(2);
      while (!launcher.has_ended() && std::ranges::includes(before, snapshots_there()) &&
             std::chrono::steady_clock::now() < give_up) {
        std::this_thread::yield();
      }
    }
    // this sleep does not synchronise: the instant is the test's input
    std::this_thread::sleep_for(delay);
    if (launcher.has_ended()) {
      const int status = launcher.wait();
      EXPECT_TRUE(WIFEXITED(status));
      EXPECT_EQ(WEXITSTATUS(status), 10) << last_failure(config_);
      ++full;
    }
    kill_all(launcher);
    EXPECT_LE(used_bytes(), limit);
    if (expect_leftovers_of_one_start()) ++leftovers;
  }
  fmt::print("of {} starts {} found the disk full, {} left something\n", count, full, leftovers);
  std::filesystem::remove(disk_ + "/filler");
  config_.durability.emulated_latency = {};
  LauncherProcess launcher(config_);
  ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
  expect_promises_kept(config_, ledger);
  auto session = SessionClient::connect(config_.cluster.run_dir, 1);
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ(rows.check(**session), "");
  session->reset();
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

class FullDiskOfLogs : public FullDisk, public testing::WithParamInterface<DurabilityScheme> {
 protected:
  FullDiskOfLogs() {
    config_.durability.scheme = GetParam();
    config_.durability.checkpoint_interval = std::chrono::milliseconds(0);
  }
};

INSTANTIATE_TEST_SUITE_P(Schemes, FullDiskOfLogs,
                         testing::Values(DurabilityScheme::gleaned, DurabilityScheme::silor),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

/// The log grows until the cluster ends with code 10. Without help, the next start-up then gives up
/// the ballast, recovers, and creates the ballast again.
TEST_P(FullDiskOfLogs, AStartOnADiskThatLogsHaveFilledRecoversAllByItself) {
  if (!mount_disk(24)) GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::strerror(errno);
  config_.gleaner.disk_reserve = 4 * kMiB;  // room for two log files of each logger
  const std::string ballast = ballast_path(config_.cluster.data_dir);
  Ledger ledger;
  {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running");
    ASSERT_TRUE(std::filesystem::exists(ballast));
    ASSERT_TRUE(create_ledger(config_));
    const std::string ledgers = folder_.path() + "/ledgers";
    std::filesystem::create_directories(ledgers);
    // Other files take the space that a snapshot at the last moment would need.
    fill_up_to(2 * kMiB);
    LedgerClients clients(config_, ledgers, random_());
    const int status = launcher.wait();
    clients.join();
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 10) << last_failure(config_);
    ledger = clients.ledger();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }
  ASSERT_GT(promised(ledger), 0u);
  ASSERT_TRUE(std::filesystem::exists(ballast)) << "a running cluster does not give it up";
  // Fills the disk until no block is free.
  std::ofstream(disk_ + "/rest") << std::string(free_bytes(), 'x');
  LauncherProcess launcher(config_);
  ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
  expect_promises_kept(config_, ledger);
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

/// Neither the sorted runs nor the pages of the whole log fit at once. Only parts fit, each in the
/// space that the earlier parts have freed.
TEST_P(FullFileSystem, ARecoveryThatNeedsMoreRoomThanThereIsGoesOnInParts) {
  if (!mount_kind(16)) GTEST_SKIP() << GetParam() << " cannot be mounted here";
  config_.gleaner.disk_reserve = 4 * kMiB;  // room for two log files of each logger
  config_.memory.volatile_pool = 64 * kMiB;
  Rows rows;
  {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running");
    create_rows();
    auto session = SessionClient::connect(config_.cluster.run_dir, 0);
    ASSERT_TRUE(session) << session.error().message;
    while (rows.write(**session)) {
    }
    const int status = launcher.wait();
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 10) << last_failure(config_);
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }
  ASSERT_GT(rows.acknowledged(), 10'000u);
  std::ofstream(disk_ + "/rest") << std::string(free_bytes(), 'x');
  LauncherProcess launcher(config_);
  ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
  const std::string said = read_text(config_.cluster.log_dir + "/coordinator.log");
  EXPECT_TRUE(said.contains("the ballast is given up")) << said;
  EXPECT_TRUE(said.contains("files that the snapshot covers are deleted")) << said;
  auto session = SessionClient::connect(config_.cluster.run_dir, 1);
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ(rows.check(**session), "");
  session->reset();
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(On, FullFileSystem, testing::Values("tmpfs", "ext4"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace atolldb::test
