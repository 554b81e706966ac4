// Backups of a cluster under TPC-C and ledger clients, one every few seconds, while kill -9 hits
// processes of the cluster and backups in progress. Each complete backup is intact and restores
// three random epochs: the ledgers are the oracle, and TPC-C's twelve conditions hold. An
// incomplete or damaged backup is refused, with the name of the backup or of the damaged file.
//
// The long form takes two minutes for the backups, on a database of the full TPC-C population, and
// a multiple of that for the restores. ATOLL_BACKUP_SECONDS sets another duration for the backups.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "bench/common/clock.h"
#include "bench/tpcc_driver/driver.h"
#include "engine/log/log_files.h"
#include "ops/backup/backup_folder.h"
#include "ops/cli/bench_cluster.h"
#include "tests/cluster/restored_ledger.h"

namespace atolldb::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr tpcc::Scale kLoadScale{.items = 200, .customers = 30, .new_orders = 9, .last_names = 10};
constexpr uint32_t kLoadWarehouses = 2;
/// Limits that the test does not reach.
constexpr RestartLimits kLoadRestarts{.most = 1'000, .first_wait = {}, .longest_wait = {}};

/// What happens during one backup.
enum class Fate : uint8_t {
  cluster_killed_after,
  backup_killed,
  cluster_killed_during,
  undisturbed
};
constexpr std::array kFates = {Fate::cluster_killed_after, Fate::backup_killed,
                               Fate::cluster_killed_during, Fate::undisturbed};
constexpr std::array kFateTexts = {"kill of the cluster after it", "kill of the backup",
                                   "kill of the cluster during it", "undisturbed"};

/// Runs TPC-C's five transactions with their usual mix, over all restarts. A job occupies all
/// workers. So each job is short, and requests of the ledger's clients run between two jobs.
class TpccLoad {
 public:
  TpccLoad(const Config& config, const tpcc::Options& options)
      : input_(tpcc::job_input(options, kLoadWarehouses)),
        thread_([this, config] { run(config); }) {}
  ~TpccLoad() { stop(); }
  TpccLoad(const TpccLoad&) = delete;
  TpccLoad& operator=(const TpccLoad&) = delete;

  void stop() {
    is_over_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }
  /// Returns the number of jobs that have ended without an error.
  uint64_t jobs() const { return jobs_.load(std::memory_order_relaxed); }

 private:
  void run(const Config& config) {
    while (!is_over_.load(std::memory_order_relaxed)) {
      cli::RunningCluster cluster(config);
      cli::BenchPort port(cluster);
      ++input_.times.run_number;  // a new number gives other transactions than before
      input_.times.run_ms = 100;
      input_.times.start_ns = bench::monotonic_ns();
      if (port.run_job(tpcc::kRunJob, input_.to_json())) {
        jobs_.fetch_add(1, std::memory_order_relaxed);
      } else {
        // this sleep does not synchronise: it spares the processes of a cluster that recovers
        std::this_thread::sleep_for(milliseconds(50));
      }
    }
  }

  tpcc::JobInput input_;
  std::atomic<bool> is_over_{false};
  std::atomic<uint64_t> jobs_{0};
  std::jthread thread_;
};

class BackupLoadTest : public RestoredLedgerTest {
 protected:
  BackupLoadTest() : RestoredLedgerTest("backup-load") {
    config_.cluster.restart = RestartPolicy::recover;
    config_.snapshot.keep = 2;
    config_.gleaner.interval = milliseconds(rounds(500, 5'000));
    config_.memory.volatile_pool = rounds(64, 512) << 20;
    config_.memory.log_buffer = rounds(2, 16) << 20;
    config_.durability.log_file_size = rounds(1, 64) << 20;
    write_config();
    if (rounds(0, 1) == 0) options_.scale = kLoadScale;
    options_.seed = random_();
  }

  void await_load() override {
    std::array<uint64_t, 2> known{};
    for (const uint32_t node : {0u, 1u}) {
      std::error_code missing;
      const uint64_t bytes = fs::file_size(clients_->file(node), missing);
      known[node] = missing ? 0 : bytes;
    }
    for (const uint32_t node : {0u, 1u}) {
      ASSERT_TRUE(eventually([&] { return clients_->has_written(node, known[node] + 5'000); }))
          << "the client of node " << node << " makes no progress";
    }
    if (tpcc_ == nullptr) return;
    const uint64_t jobs = tpcc_->jobs();
    ASSERT_TRUE(eventually([&] { return tpcc_->jobs() > jobs + 1; })) << "TPC-C has no progress";
  }

  /// Checks TPC-C's conditions in a restored cluster.
  void expect_more(const Config& restored) override {
    cli::RunningCluster cluster(restored);
    cli::BenchPort port(cluster);
    tpcc::Options options = options_;
    options.repeat = 0;  // no run, only the verification
    const auto report = tpcc::Driver(port, options, kLoadWarehouses, silent_).resume();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->verify_done);
    EXPECT_EQ(report->violations, std::vector<std::string>{});
  }

  /// Starts the cluster, TPC-C and the ledger's clients. Both kept snapshots contain the whole
  /// population of TPC-C.
  void begin() {
    launcher_ = std::make_unique<LauncherProcess>(config_, false, kLoadRestarts);
    ASSERT_EQ(launcher_->next_line(), "running");
    ASSERT_TRUE(create_ledger(config_));
    cli::RunningCluster cluster(config_);
    cli::BenchPort port(cluster);
    const auto loaded = tpcc::Driver(port, options_, kLoadWarehouses, silent_).load_database();
    ASSERT_TRUE(loaded) << loaded.error().message;
    clients_ = std::make_unique<LedgerClients>(config_, ledgers_, random_(), true);
    for (int i = 0; i < 2; ++i) {
      ASSERT_NO_FATAL_FAILURE(await_load());
      take_snapshot();
    }
    tpcc_ = std::make_unique<TpccLoad>(config_, options_);
    ASSERT_NO_FATAL_FAILURE(await_load());
  }
  /// Ends the cluster and its launcher, so that nothing restarts the cluster.
  void end() {
    kill(launcher_->pid(), SIGKILL);
    launcher_->wait();
    launcher_.reset();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
    tpcc_->stop();
    clients_->stop();
  }

  /// Kills a process other than the launcher, and waits until the cluster runs again.
  void kill_and_await_restart() {
    const std::array roles = {"node0", "node1", "coordinator"};
    const std::string role = roles[random_() % roles.size()];
    for (const pid_t pid : processes_of(config_.cluster.name, role)) kill(pid, SIGKILL);
    ++kills_;
    const auto begun = Clock::now();
    const auto runs_again = [&] {
      const Json note = Json::parse(read_text(restarts_path(config_)), nullptr, false);
      return note.is_object() && note.value("count", uint64_t{0}) == kills_ &&
             !note.value("under_way", true);
    };
    while (!runs_again()) {
      ASSERT_LT(Clock::now() - begun, std::chrono::minutes(3)) << "after kill -9 of " << role;
      ASSERT_FALSE(launcher_->has_ended()) << last_failure(config_);
      // this sleep does not synchronise: it spares the processes that the test waits for
      std::this_thread::sleep_for(milliseconds(20));
    }
    std::printf("  kill -9 of %s, runs again after %.1f s\n", role.c_str(), seconds_since(begun));
  }

  static double seconds_since(Clock::time_point time) {
    return std::chrono::duration<double>(Clock::now() - time).count();
  }
  uint64_t commits() const {
    cli::RunningCluster cluster(config_);
    return cli::BenchPort(cluster).commits();
  }
  pid_t start_backup() const {
    return runner_.start(std::string(ATOLL_BIN_DIR) + "/atoll",
                         {"backup", backups_, "--json", "-c", file_},
                         folder_.path() + "/backup.out", folder_.path() + "/backup.err");
  }
  /// Waits for a backup. Returns its exit code, or 128 and the signal that killed it.
  int await_backup(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
    const Json said = Json::parse(read_text(folder_.path() + "/backup.out"), nullptr, false);
    // If the cluster is dead, the pins of a complete backup cannot be removed. The command then
    // reports the complete backup and also fails.
    if (said.is_object()) said_complete_.push_back(said.at("id"));
    EXPECT_TRUE(said.is_object() || WEXITSTATUS(status) != 0);
    return WEXITSTATUS(status);
  }

  /// Takes one backup while `fate` happens.
  void back_up(Fate fate) {
    const uint64_t commits_before = fate == Fate::undisturbed ? commits() : 0;
    const auto begun = Clock::now();
    const pid_t pid = start_backup();
    // a random instant within the time of an ordinary backup
    const auto instant = milliseconds(random_() % longest_ms_);
    if (fate == Fate::backup_killed || fate == Fate::cluster_killed_during) {
      std::this_thread::sleep_for(instant);
    }
    if (fate == Fate::backup_killed) kill(pid, SIGKILL);
    if (fate == Fate::cluster_killed_during) {
      ASSERT_NO_FATAL_FAILURE(kill_and_await_restart());
    }
    const int code = await_backup(pid);
    const double took = seconds_since(begun);
    if (fate == Fate::undisturbed || fate == Fate::cluster_killed_after) {
      EXPECT_EQ(code, 0) << read_text(folder_.path() + "/backup.err");
      longest_ms_ = std::max(longest_ms_, static_cast<uint64_t>(took * 1000));
    }
    if (fate == Fate::undisturbed) {
      std::printf("  %.0f transactions/s while the backup runs\n",
                  static_cast<double>(commits() - commits_before) / took);
    }
    std::printf("  exit code %d after %.1f s: %s\n", code, took,
                code == 0 ? "complete" : read_text(folder_.path() + "/backup.err").c_str());
    ASSERT_NO_FATAL_FAILURE(expect_incomplete_refused());
    if (fate == Fate::cluster_killed_after) {
      std::this_thread::sleep_for(milliseconds(random_() % 1'000));  // a random instant
      ASSERT_NO_FATAL_FAILURE(kill_and_await_restart());
    }
  }

  /// Checks that the killed backup, which has no manifest, is refused by name.
  void expect_incomplete_refused() {
    PosixFileSystem files;
    const auto found = list_backups(files, backups_);
    ASSERT_TRUE(found) << found.error().message;
    for (const ListedBackup& backup : *found) {
      EXPECT_EQ(backup.damage, "");
      if (backup.is_complete()) continue;
      ++incomplete_;
      const Ran refused = runner_.atoll(
          {"restore", backups_ + "/" + backup.id, "--to", folder_.path() + "/refused"});
      EXPECT_EQ(refused.code, 1) << refused.error;
      EXPECT_NE(refused.error.find(backup.id + ": is incomplete"), std::string::npos)
          << refused.error;
    }
  }

  /// Restores three random epochs of the backup.
  void expect_states(const BackupManifest& backup, const Ledger& ledger) {
    const std::string from = backup_path(backups_, backup.id);
    for (int i = 0; i < 3; ++i) {
      const auto begun = Clock::now();
      const uint64_t epoch =
          backup.oldest_epoch + random_() % (backup.durable_epoch - backup.oldest_epoch + 1);
      ASSERT_NO_FATAL_FAILURE(expect_restored({from}, epoch, ledger));
      std::printf("  epoch %llu of %llu to %llu: equal after %.1f s\n", epoch + 0ULL,
                  backup.oldest_epoch + 0ULL, backup.durable_epoch + 0ULL, seconds_since(begun));
    }
  }

  /// Inverts a random byte of the file, calls `check`, and inverts it again.
  template <typename Check>
  void with_damage(const std::string& path, uint64_t bytes, Check check) {
    const auto offset = static_cast<std::streamoff>(random_() % bytes);
    const auto invert = [&] {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      char byte = 0;
      file.seekg(offset).get(byte);
      file.seekp(offset).put(static_cast<char>(~byte));
      ASSERT_TRUE(file.good()) << path;
    };
    SCOPED_TRACE("damage to byte " + std::to_string(offset) + " of " + path);
    ASSERT_NO_FATAL_FAILURE(invert());
    check();
    invert();
  }
  /// Damage to any file is found by verify. Damage to the log of the last incarnation, which the
  /// last epoch needs, is found by restore, too. Both name the file.
  void expect_damage_refused(const BackupManifest& backup) {
    const std::string folder = backup_path(backups_, backup.id);
    const auto verify_refuses = [&](const std::string& path) {
      const Ran verified = runner_.atoll({"backup", "verify", backups_, backup.id});
      EXPECT_EQ(verified.code, 7) << verified.out;
      EXPECT_NE(verified.error.find(path), std::string::npos) << verified.error;
    };
    std::vector<BackupFile> all;
    std::vector<BackupFile> logs;
    for (const BackupFile& file : backup.files) {
      if (file.bytes == 0) continue;
      all.push_back(file);
      const auto name = parse_log_file_name(fs::path(file.path).filename().string());
      if (name && name->incarnation == backup.incarnation) logs.push_back(file);
    }
    ASSERT_FALSE(logs.empty());
    const BackupFile& any = all[random_() % all.size()];
    const std::string any_path = folder + "/" + any.path;
    with_damage(any_path, any.bytes, [&] { verify_refuses(any_path); });
    const BackupFile& log = logs[random_() % logs.size()];
    const std::string log_path = folder + "/" + log.path;
    with_damage(log_path, log.bytes, [&] {
      verify_refuses(log_path);
      const std::string to = folder_.path() + "/refused";
      const Ran refused = runner_.atoll({"restore", folder, "--to", to});
      EXPECT_EQ(refused.code, 7) << refused.error;
      EXPECT_NE(refused.error.find(log_path), std::string::npos) << refused.error;
      EXPECT_FALSE(fs::exists(to + "/owner")) << "a start-up would take it for complete";
      fs::remove_all(to);
    });
  }

  const bench::Console silent_{[](const std::string&) {}, [](const std::string&) {}};
  tpcc::Options options_;
  std::unique_ptr<TpccLoad> tpcc_;
  std::vector<std::string> said_complete_;  // ids of backups reported as complete
  uint64_t kills_ = 0;                      // kills of processes of the cluster
  uint64_t incomplete_ = 0;
  uint64_t longest_ms_ = 500;  // longest time of a backup that was not killed; at first a guess
};

TEST_F(BackupLoadTest, EachCompleteBackupUnderTpccAndKillsRestoresRandomEpochs) {
  ASSERT_NO_FATAL_FAILURE(begin());
  const seconds interval(rounds(4, 10));
  const uint64_t count =
      seconds_of_test("ATOLL_BACKUP_SECONDS", 8, 120) / static_cast<uint64_t>(interval.count());
  std::vector<Fate> fates;
  for (uint64_t i = 0; i < count; ++i) fates.push_back(kFates[i % kFates.size()]);
  if (count > kFates.size()) std::ranges::shuffle(fates, random_);
  auto next = Clock::now();
  for (const Fate fate : fates) {
    std::printf("backup: %s\n", kFateTexts[static_cast<size_t>(fate)]);
    ASSERT_NO_FATAL_FAILURE(back_up(fate));
    ASSERT_NO_FATAL_FAILURE(await_load());
    const uint64_t commits_before = fate == Fate::undisturbed ? commits() : 0;
    const auto idle_since = Clock::now();
    next = std::max(next + interval, idle_since + seconds(1));
    std::this_thread::sleep_until(next);  // the interval is the test's input
    if (fate == Fate::undisturbed) {
      std::printf("  %.0f transactions/s between the backups\n",
                  static_cast<double>(commits() - commits_before) / seconds_since(idle_since));
    }
  }
  end();
  // The backup of the dead cluster has all that was promised, also to the clients of TPC-C.
  ASSERT_EQ(await_backup(start_backup()), 0) << read_text(folder_.path() + "/backup.err");
  const Ledger ledger = clients_->ledger();
  std::printf(
      "%llu kills of the cluster, %llu incomplete backups, %llu said complete; %llu "
      "transactions in the ledgers, %llu jobs of TPC-C\n",
      kills_ + 0ULL, incomplete_ + 0ULL, said_complete_.size() + 0ULL, ledger.size() + 0ULL,
      tpcc_->jobs() + 0ULL);
  PosixFileSystem files;
  const auto found = list_backups(files, backups_);
  ASSERT_TRUE(found) << found.error().message;
  std::map<std::string, BackupManifest> complete;
  for (const ListedBackup& backup : *found) {
    ASSERT_TRUE(backup.is_complete()) << backup.id << ": the last backup removes incomplete ones";
    complete[backup.id] = *backup.manifest;
  }
  for (const std::string& id : said_complete_) EXPECT_TRUE(complete.contains(id)) << id;
  const Ran verified = runner_.atoll({"backup", "verify", backups_});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.error;
  for (const auto& [id, manifest] : complete) {
    std::printf("restores of backup %s: %zu files, %llu MiB\n", id.c_str(), manifest.files.size(),
                static_cast<unsigned long long>(manifest.bytes() >> 20));
    ASSERT_NO_FATAL_FAILURE(expect_states(manifest, ledger));
    ASSERT_NO_FATAL_FAILURE(expect_damage_refused(manifest));
  }
  const Ran intact = runner_.atoll({"backup", "verify", backups_});
  EXPECT_EQ(intact.code, 0) << "the damage is undone: " << intact.error;
}

}  // namespace
}  // namespace atolldb::test
