// Copies, clones and moves of data directories (R47-R50). A copy must not affect its original, and
// must not start before it is adopted.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "ops/launcher/owner_file.h"
#include "ops/launcher/run_folder.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"

namespace atolldb::test {
namespace {

namespace fs = std::filesystem;

constexpr int kIdentity = static_cast<int>(ExitCode::identity);

/// A cluster with a log directory besides data_dir, in one folder that can be copied as a whole.
class Site {
 public:
  Site(const TestFolder& folder, const CliRunner& runner, const std::string& name,
       const std::string& volume)
      : config_(folder.config(name)), runner_(runner), volume_(volume) {
    config_.cluster.data_dir = volume + "/data";
    config_.cluster.hang_limit = std::chrono::minutes(2);
    config_.nodes[1].directories = {volume + "/fast"};
    file_ = folder.path() + "/" + name + ".toml";
    ledgers_ = folder.path() + "/" + name + ".ledgers";
    fs::create_directories(ledgers_);
    std::ofstream(file_) << to_toml(config_);
  }
  ~Site() { kill_all(); }
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  Config& config() { return config_; }
  const std::string& file() const { return file_; }
  const std::string& ledgers() const { return ledgers_; }
  const std::string& volume() const { return volume_; }
  pid_t pid() const { return launcher_->pid(); }
  bool has_ended() { return !launcher_ || launcher_->has_ended(); }

  Ran atoll(std::vector<std::string> words) const {
    words.insert(words.end(), {"-c", file_});
    return runner_.atoll(std::move(words));
  }
  void start() {
    launcher_ = std::make_unique<LauncherProcess>(config_);
    const std::string line = launcher_->next_line();
    ASSERT_EQ(line, "running") << config_.cluster.name;
  }
  void begin_load(uint64_t seed) {
    clients_ = std::make_unique<LedgerClients>(config_, ledgers_, seed);
  }
  /// Waits until each client has written more.
  void await_load() {
    for (const uint32_t node : {0u, 1u}) {
      std::error_code missing;
      const uint64_t before = fs::file_size(clients_->file(node), missing);
      const uint64_t known = missing ? 0 : before;
      ASSERT_TRUE(eventually([&] { return clients_->has_written(node, known + 10'000); }));
    }
  }
  void end_load() {
    if (clients_) clients_->stop();
  }
  /// Ends the cluster by killing one process. The launcher ends the others.
  void kill_one(const std::string& role) {
    if (role == "launcher") {
      kill(launcher_->pid(), SIGKILL);
    } else {
      for (const pid_t pid : processes_of(config_.cluster.name, role)) kill(pid, SIGKILL);
    }
    launcher_->wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
    clients_->join();
    launcher_.reset();
  }
  void stop() {
    end_load();
    kill(launcher_->pid(), SIGTERM);
    EXPECT_EQ(launcher_->wait(), 0);
    launcher_.reset();
  }
  void kill_all() {
    if (launcher_) kill(launcher_->pid(), SIGKILL);
    if (launcher_) launcher_->wait();
    launcher_.reset();
    if (clients_) clients_->join();
    clients_.reset();
  }
  /// Returns all processes of the cluster, the launcher included.
  std::vector<pid_t> processes() const {
    std::vector<pid_t> all = processes_of(config_.cluster.name);
    if (launcher_) all.push_back(launcher_->pid());
    return all;
  }
  /// REQUIRES: the cluster runs, without load.
  void expect_promises_kept() {
    const Ledger ledger = clients_->ledger();
    EXPECT_GT(ledger.size(), 0u);
    auto session = SessionClient::connect(config_.cluster.run_dir, 0);
    ASSERT_TRUE(session) << session.error().message;
    const auto state = read_ledger_state(**session);
    ASSERT_TRUE(state) << state.error().message;
    for (const LedgerViolation& one : check_ledger(ledger, *state)) {
      ADD_FAILURE() << config_.cluster.name << ": " << one.text;
    }
  }

 private:
  Config config_;
  const CliRunner& runner_;
  std::string volume_;
  std::string file_;
  std::string ledgers_;
  std::unique_ptr<LauncherProcess> launcher_;
  std::unique_ptr<LedgerClients> clients_;
};

/// Returns the contents of all files below the directory, by path.
std::map<std::string, std::string> contents_below(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) files[entry.path().string()] = read_text(entry.path().string());
  }
  return files;
}

void copy_all(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

/// Copies volume and ledgers as of one instant. All processes of the cluster are stopped during the
/// copy.
void clone(const Site& from, const Site& to) {
  const std::vector<pid_t> processes = from.processes();
  for (const pid_t pid : processes) kill(pid, SIGSTOP);
  copy_all(from.volume(), to.volume());
  copy_all(from.ledgers(), to.ledgers());
  for (const pid_t pid : processes) kill(pid, SIGCONT);
}

void expect_refused(const Ran& ran, const std::string& directory) {
  EXPECT_EQ(ran.code, kIdentity) << ran.out << ran.error;
  EXPECT_NE(ran.error.find(directory + ": is not at the place"), std::string::npos) << ran.error;
  EXPECT_NE(ran.error.find("atoll data adopt --moved"), std::string::npos) << ran.error;
  EXPECT_NE(ran.error.find("atoll data adopt --copy"), std::string::npos) << ran.error;
}

class CloneTest : public testing::Test {
 protected:
  TestFolder folder_;
  CliRunner runner_{folder_};
  Site original_{folder_, runner_, "clone-original", folder_.path() + "/a"};
  Site copy_{folder_, runner_, "clone-copy", folder_.path() + "/b"};
  std::mt19937_64 random_{seed()};

  void start_original() {
    ASSERT_NO_FATAL_FAILURE(original_.start());
    ASSERT_TRUE(create_ledger(original_.config()));
    original_.begin_load(random_());
    ASSERT_NO_FATAL_FAILURE(original_.await_load());
  }
  /// Every command that would change the copy's data is refused.
  void expect_copy_refused() {
    const auto before = contents_below(copy_.volume());
    const std::string data_dir = copy_.config().cluster.data_dir;
    expect_refused(copy_.atoll({"up"}), data_dir);
    expect_refused(copy_.atoll({"up", "--discard-data"}), data_dir);
    for (const char* words : {"pin", "unpin", "rm"}) {
      std::vector<std::string> command = {"snapshot", words, "--data-dir", data_dir};
      if (std::string(words) != "pin") command.push_back("1");
      expect_refused(runner_.atoll(command), data_dir);
    }
    auto after = contents_below(copy_.volume());
    auto unlocked = before;
    for (auto* files : {&unlocked, &after}) {
      std::erase_if(*files, [](const auto& file) { return file.first.ends_with("/lock"); });
    }
    EXPECT_EQ(unlocked, after) << "a refused start changes nothing";
  }
  void adopt(const char* how, int code = 0) {
    const Ran ran = copy_.atoll({"data", "adopt", how});
    EXPECT_EQ(ran.code, code) << ran.out << ran.error;
  }
};

TEST_F(CloneTest, BesideALiveClusterUnderLoadNeitherDisturbsTheOtherWhicheverIsKilled) {
  ASSERT_NO_FATAL_FAILURE(start_original());
  const std::vector<std::string> roles = {"launcher", "coordinator", "node0", "node1"};
  const uint64_t count = rounds(2, 20);
  for (uint64_t round = 0; round < count; ++round) {
    const std::string role = roles[random_() % roles.size()];
    Site& victim = random_() % 2 == 0 ? original_ : copy_;
    SCOPED_TRACE("round " + std::to_string(round) + ": " + role + " of " +
                 victim.config().cluster.name + " is killed");
    clone(original_, copy_);
    const std::vector<pid_t> processes = original_.processes();
    ASSERT_NO_FATAL_FAILURE(expect_copy_refused());
    adopt("--moved", kIdentity);
    adopt("--copy");
    ASSERT_NO_FATAL_FAILURE(copy_.start());
    copy_.begin_load(random_());
    ASSERT_NO_FATAL_FAILURE(copy_.await_load());
    // The original still runs, with the same processes.
    EXPECT_EQ(original_.processes(), processes);
    ASSERT_NO_FATAL_FAILURE(original_.await_load());
    victim.kill_one(role);
    Site& survivor = &victim == &original_ ? copy_ : original_;
    ASSERT_NO_FATAL_FAILURE(survivor.await_load());
    ASSERT_NO_FATAL_FAILURE(victim.start());
    for (Site* site : {&original_, &copy_}) {
      site->end_load();
      site->expect_promises_kept();
    }
    copy_.stop();
    original_.begin_load(random_());
    ASSERT_NO_FATAL_FAILURE(original_.await_load());
  }
  original_.stop();
  for (const char* words : {"wal", "snapshot"}) {
    const Ran verified = original_.atoll({words, "verify"});
    EXPECT_EQ(verified.code, 0) << verified.out << verified.error;
  }
}

/// Returns the answer of kv.commit to a request that names this incarnation.
SessionReply commit_of(const Config& config, uint64_t incarnation) {
  auto session = SessionClient::connect(config.cluster.run_dir, 0);
  if (!session) {
    ADD_FAILURE() << session.error().message;
    return {};
  }
  KvRequest request(incarnation);
  const uint64_t key = 1;
  request.get(kLedgerStorage, ordered_index_key(key));
  return (*session)->call("kv.commit", request.bytes());
}

uint64_t incarnation_of(const Config& config) {
  auto session = SessionClient::connect(config.cluster.run_dir, 0);
  return session ? (*session)->incarnation() : 0;
}

TEST_F(CloneTest, TakesNoCommitThatWasPreparedAtTheOriginalNorTheOtherWayRound) {
  ASSERT_NO_FATAL_FAILURE(start_original());
  clone(original_, copy_);
  adopt("--copy");
  ASSERT_NO_FATAL_FAILURE(copy_.start());
  original_.end_load();
  const uint64_t first = incarnation_of(original_.config());
  const uint64_t second = incarnation_of(copy_.config());
  EXPECT_NE(first, second);
  EXPECT_EQ(commit_of(original_.config(), first).status, Status::ok);
  EXPECT_EQ(commit_of(copy_.config(), second).status, Status::ok);
  EXPECT_NE(commit_of(copy_.config(), first).status, Status::ok);
  EXPECT_NE(commit_of(original_.config(), second).status, Status::ok);
  copy_.begin_load(random_());
  copy_.stop();
  // A copy of the copy is refused, too.
  const std::string id =
      (*read_owner(*std::make_unique<PosixFileSystem>(), copy_.volume() + "/data"))->id;
  original_.stop();
  const std::string aside = folder_.path() + "/aside";
  fs::rename(original_.volume(), aside);
  copy_all(copy_.volume(), original_.volume());
  const Ran adopted = original_.atoll({"data", "adopt", "--copy", "--json"});
  ASSERT_EQ(adopted.code, 0) << adopted.error;
  const nlohmann::json report = nlohmann::json::parse(adopted.out);
  EXPECT_EQ(report.at("previous_id"), id);
  EXPECT_NE(report.at("id"), id);
  ASSERT_NO_FATAL_FAILURE(original_.start());
  const uint64_t third = incarnation_of(original_.config());
  EXPECT_NE(third, first);
  EXPECT_NE(third, second);
}

TEST_F(CloneTest, AMovedClusterStartsAfterItIsAdoptedAndKeepsItsIdentity) {
  ASSERT_NO_FATAL_FAILURE(start_original());
  original_.end_load();
  original_.stop();
  fs::rename(original_.volume(), copy_.volume());
  copy_all(original_.ledgers(), copy_.ledgers());
  ASSERT_NO_FATAL_FAILURE(expect_copy_refused());
  const Ran adopted = copy_.atoll({"data", "adopt", "--moved", "--json"});
  ASSERT_EQ(adopted.code, 0) << adopted.error;
  const nlohmann::json report = nlohmann::json::parse(adopted.out);
  EXPECT_EQ(report.at("id"), report.at("previous_id"));
  EXPECT_EQ(report.at("adoption"), "moved");
  EXPECT_EQ(report.at("directories").size(), 2u);
  ASSERT_NO_FATAL_FAILURE(copy_.start());
  copy_.begin_load(random_());
  ASSERT_NO_FATAL_FAILURE(copy_.await_load());
  copy_.end_load();
  copy_.expect_promises_kept();
  EXPECT_EQ(copy_.atoll({"data", "adopt", "--moved"}).code, 4) << "it runs";
  copy_.stop();
  const Ran again = copy_.atoll({"data", "adopt", "--moved", "--json"});
  EXPECT_EQ(again.code, 0) << again.error;
  EXPECT_EQ(nlohmann::json::parse(again.out).at("changed"), false);
  adopt("--copy", kIdentity);
  const Ran neither = copy_.atoll({"data", "adopt"});
  EXPECT_EQ(neither.code, 2) << neither.error;
}

TEST_F(CloneTest, ACopyMustHaveAllDirectoriesAndNoneOfTheOriginal) {
  ASSERT_NO_FATAL_FAILURE(start_original());
  clone(original_, copy_);
  original_.stop();
  copy_.config().nodes[1].directories = {original_.volume() + "/fast"};
  std::ofstream(copy_.file()) << to_toml(copy_.config());
  const auto before = contents_below(original_.volume());
  const Ran of_original = copy_.atoll({"data", "adopt", "--copy"});
  EXPECT_EQ(of_original.code, kIdentity) << of_original.error;
  EXPECT_NE(of_original.error.find("not to the copy"), std::string::npos) << of_original.error;
  copy_.config().nodes[1].directories = {};
  std::ofstream(copy_.file()) << to_toml(copy_.config());
  const Ran without = copy_.atoll({"data", "adopt", "--copy"});
  EXPECT_EQ(without.code, 1) << without.error;
  EXPECT_NE(without.error.find("need log-1"), std::string::npos) << without.error;
  EXPECT_EQ(contents_below(original_.volume()), before);
  expect_refused(copy_.atoll({"up"}), copy_.config().cluster.data_dir);
}

/// A file system in a file, mounted until the end of the test.
class LoopVolume {
 public:
  LoopVolume(const CliRunner& runner, std::string image, std::string mount_point)
      : runner_(runner), image_(std::move(image)), mount_point_(std::move(mount_point)) {
    fs::create_directories(mount_point_);
  }
  ~LoopVolume() { unmount(); }
  LoopVolume(const LoopVolume&) = delete;
  LoopVolume& operator=(const LoopVolume&) = delete;

  /// Makes the file system. Returns an empty text, or the reason why this machine cannot do it.
  std::string format() {
    if (geteuid() != 0) return "this test mounts a file: it needs root";
    std::ofstream(image_).put('\0');
    fs::resize_file(image_, uint64_t{256} << 20);
    return told(runner_.run("/sbin/mkfs.ext4", {"-q", image_}));
  }
  std::string mount() {
    std::string why = told(runner_.run("/bin/mount", {"-o", "loop", image_, mount_point_}));
    is_mounted_ = why.empty();
    return why;
  }
  void unmount() {
    if (is_mounted_) umount2(mount_point_.c_str(), 0);
    is_mounted_ = false;
  }
  const std::string& image() const { return image_; }
  const std::string& mount_point() const { return mount_point_; }

 private:
  static std::string told(const Ran& ran) {
    return ran.code == 0 ? "" : "a loop device cannot be used here: " + ran.error;
  }
  const CliRunner& runner_;
  std::string image_;
  std::string mount_point_;
  bool is_mounted_ = false;
};

dev_t device_of(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return info.st_dev;
}

TEST_F(CloneTest, ARemountedVolumeStartsAsItIsAndAClonedOneMountedElsewhereIsRefused) {
  LoopVolume other(runner_, folder_.path() + "/other.img", folder_.path() + "/other");
  LoopVolume volume(runner_, folder_.path() + "/a.img", original_.volume());
  LoopVolume cloned(runner_, folder_.path() + "/b.img", copy_.volume());
  for (LoopVolume* each : {&other, &volume}) {
    std::string why = each->format();
    if (why.empty() && each == &volume) why = each->mount();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  ASSERT_NO_FATAL_FAILURE(start_original());
  original_.end_load();
  original_.stop();
  const dev_t before = device_of(volume.mount_point());
  volume.unmount();
  // The other volume takes the first free loop device, so that `volume` gets another device below.
  ASSERT_EQ(other.mount(), "");
  fs::copy_file(volume.image(), cloned.image());
  ASSERT_EQ(volume.mount(), "");
  EXPECT_NE(device_of(volume.mount_point()), before);
  ASSERT_NO_FATAL_FAILURE(original_.start());
  original_.begin_load(random_());
  ASSERT_NO_FATAL_FAILURE(original_.await_load());
  // The clone is identical block by block, including the ids of the file system.
  ASSERT_EQ(cloned.mount(), "");
  copy_all(original_.ledgers(), copy_.ledgers());
  ASSERT_NO_FATAL_FAILURE(expect_copy_refused());
  EXPECT_FALSE(original_.has_ended());
  original_.stop();
  volume.unmount();
  other.unmount();
}

}  // namespace
}  // namespace atolldb::test
