// Start-ups that lack space or a permission, and what is reported about a start-up that is slow.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "shared/base/path_errors.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr uid_t kOtherUser = 54'321;  // not a user of this machine

/// A file system without free space, unmounted by the destructor.
class FullMount {
 public:
  /// `options`: mount options of the tmpfs. With nr_inodes=1 it has an inode for the root and none
  /// for a folder.
  FullMount(std::string path, const std::string& options) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    if (mount("tmpfs", path_.c_str(), "tmpfs", 0, options.c_str()) != 0) error_ = errno;
  }
  ~FullMount() {
    if (error_ == 0) umount2(path_.c_str(), MNT_DETACH);
  }
  FullMount(const FullMount&) = delete;
  FullMount& operator=(const FullMount&) = delete;

  /// Fills the file system to the last byte.
  void fill() const {
    std::ofstream file(path_ + "/filler");
    const std::string block(4096, 'x');
    while (file.write(block.data(), std::ssize(block)).flush()) {
    }
  }
  int error() const { return error_; }

 private:
  std::string path_;
  int error_ = 0;
};

class RefusedStart : public ::testing::Test {
 protected:
  RefusedStart() {
    std::printf("seed: none, nothing here is random\n");
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  }

  /// Makes the name unique, because other tests may run at the same time.
  static std::string unique(const char* name) { return name + std::to_string(getpid()); }
  std::string write(const Config& config) const {
    std::string path = folder_.path() + "/" + config.cluster.name + ".toml";
    std::ofstream(path, std::ios::trunc) << to_toml(config);
    return path;
  }
  Ran up_as_other(const std::string& file) const {
    const std::string id = std::to_string(kOtherUser);
    return runner_.run("/usr/bin/setpriv",
                       {"--reuid=" + id, "--regid=" + id, "--clear-groups",
                        std::string(ATOLL_BIN_DIR) + "/atoll", "up", "-c", file});
  }
  void expect_full(const Config& config, const std::string& place, const char* what) const {
    const Ran up = runner_.atoll({"up", "-c", write(config)});
    EXPECT_EQ(up.code, 10) << what << ": " << up.error;
    EXPECT_NE(up.error.find(place), std::string::npos) << what << ": " << up.error;
    EXPECT_NE(up.error.find("(mounted on " + place + ")"), std::string::npos)
        << what << ": " << up.error;
    EXPECT_NE(up.error.find("No space left on device"), std::string::npos) << up.error;
    EXPECT_NE(up.error.find("free"), std::string::npos) << up.error;
    EXPECT_TRUE(eventually([&] { return processes_of(config.cluster.name).empty(); }));
  }

  TestFolder folder_;
  CliRunner runner_{folder_};
};

TEST_F(RefusedStart, AFullDiskEndsItWithCode10AndNamesTheFileSystem) {
  const std::string place = folder_.path() + "/full";
  const std::string inside = place + "/x";
  const Config good = folder_.config(unique("full"), 1);
  for (const bool has_folders : {false, true}) {
    // The first file system has no inode for a folder. The second one has folders, but no free
    // byte.
    const FullMount full(place, has_folders ? "size=64k" : "size=64k,nr_inodes=1");
    if (full.error() != 0) {
      GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::strerror(full.error());
    }
    if (has_folders) {
      std::filesystem::create_directories(inside);
      full.fill();
    }
    Config config = good;
    config.cluster.run_dir = inside;
    config.control.endpoint = "ipc://" + inside + "/control.sock";
    expect_full(config, place, "run_dir");
    config = good;
    config.cluster.data_dir = inside;
    expect_full(config, place, "data_dir");
    config = good;
    config.nodes[0].directories = {inside};
    expect_full(config, place, "directories");
    if (has_folders) continue;  // an empty log file needs no space
    config = good;
    config.cluster.log_dir = inside;
    expect_full(config, place, "log_dir");
  }
  LauncherProcess next(good);  // the failed start-ups must not prevent this one
  EXPECT_EQ(next.next_line(), "running");
  kill(next.pid(), SIGTERM);
  EXPECT_EQ(next.wait(), 0);
}

TEST_F(RefusedStart, AFirstLogFileThatFindsNoRoomEndsItWithCode10) {
  const std::string place = folder_.path() + "/small";
  const FullMount small(place, "size=512k");
  if (small.error() != 0) {
    GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::strerror(small.error());
  }
  Config config = folder_.config(unique("small"), 1);
  config.nodes[0].directories = {place};  // too small for a log file, which has 1 MiB
  expect_full(config, place, "log file");
  const Json note = Json::parse(read_text(last_failure_path(config)), nullptr, false);
  EXPECT_EQ(note.value("errno", 0), ENOSPC) << note.dump();
  EXPECT_TRUE(note.value("file", "").starts_with(place + "/")) << note.dump();
  const Ran status = runner_.atoll({"status", "--json", "-c", write(config)});
  const Json told = Json::parse(status.out, nullptr, false);
  EXPECT_EQ(told.at("last_failure_details").at("errno"), ENOSPC) << status.out;
}

TEST_F(RefusedStart, AMissingPermissionIsCalledSoWithThePathItsOwnerAndTheUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string own = folder_.path() + "/own";
  const std::string closed = folder_.path() + "/closed";
  for (const std::string& path : {own, closed}) {
    std::filesystem::create_directories(path);
    ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  }
  ASSERT_EQ(chown(own.c_str(), kOtherUser, kOtherUser), 0);
  Config good = folder_.config(unique("may"), 1);
  good.cluster.run_dir = own + "/run";
  good.cluster.log_dir = own + "/log";
  good.cluster.data_dir = own + "/data";
  good.control.endpoint = "ipc://" + own + "/run/control.sock";
  const std::string id = std::to_string(kOtherUser);
  if (const Ran ran =
          runner_.run("/usr/bin/setpriv", {"--reuid=" + id, "--regid=" + id, "--clear-groups",
                                           std::string(ATOLL_BIN_DIR) + "/atoll", "--version"});
      ran.code != 0) {
    GTEST_SKIP() << "other users cannot run the program here: " << ran.error;
  }
  const auto expect_refused = [&](const Config& config, const std::string& path) {
    const Ran up = up_as_other(write(config));
    EXPECT_NE(up.code, 0);
    EXPECT_NE(up.code, 3);
    EXPECT_NE(up.error.find("Permission denied"), std::string::npos) << up.error;
    const std::string who = path + " belongs to " + user_text(0) + " with mode ";
    EXPECT_NE(up.error.find(who), std::string::npos) << up.error;
    EXPECT_NE(up.error.find("this is " + user_text(kOtherUser)), std::string::npos) << up.error;
    EXPECT_EQ(up.error.find("No such file"), std::string::npos) << up.error;
    EXPECT_EQ(up.error.find("not running"), std::string::npos) << up.error;
  };
  Config config = good;
  config.cluster.run_dir = closed + "/run";
  config.control.endpoint = "ipc://" + closed + "/run/control.sock";
  expect_refused(config, closed);
  config = good;
  config.cluster.log_dir = closed + "/log";
  expect_refused(config, closed);
  config = good;
  config.cluster.data_dir = closed + "/data";
  expect_refused(config, closed);
  config = good;
  config.nodes[0].directories = {closed + "/disk"};
  expect_refused(config, closed);
  // A lock file that another user left.
  std::filesystem::create_directories(own + "/data");
  ASSERT_EQ(chown((own + "/data").c_str(), kOtherUser, kOtherUser), 0);
  std::filesystem::remove(own + "/data/lock");  // made by a start-up above
  std::ofstream(own + "/data/lock") << "";
  ASSERT_EQ(chown((own + "/data/lock").c_str(), 0, 0), 0);
  ASSERT_EQ(chmod((own + "/data/lock").c_str(), 0600), 0);
  expect_refused(good, own + "/data/lock");
  std::filesystem::remove(own + "/data/lock");
  // A program of the cluster that cannot be executed.
  const std::string programs = folder_.path() + "/bin";
  std::filesystem::create_directories(programs);
  std::filesystem::copy_file(std::string(ATOLL_BIN_DIR) + "/atoll", programs + "/atoll");
  std::ofstream(programs + "/atoll-coordinator") << "";
  ASSERT_EQ(chmod((programs + "/atoll-coordinator").c_str(), 0600), 0);
  const Ran closed_program =
      runner_.run("/usr/bin/setpriv", {"--reuid=" + id, "--regid=" + id, "--clear-groups",
                                       programs + "/atoll", "up", "-c", write(good)});
  EXPECT_NE(closed_program.code, 0);
  const std::string refused = programs +
                              "/atoll-coordinator: cannot be run: Permission denied: " + programs +
                              "/atoll-coordinator belongs to " + user_text(0);
  EXPECT_NE(closed_program.error.find(refused), std::string::npos) << closed_program.error;
  // A config file that cannot be read.
  const std::string file = write(good);
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  const Ran unread = up_as_other(file);
  EXPECT_EQ(unread.code, 78) << unread.error;
  EXPECT_NE(unread.error.find("Permission denied"), std::string::npos) << unread.error;
  EXPECT_NE(unread.error.find("belongs to " + user_text(0)), std::string::npos) << unread.error;
}

TEST_F(RefusedStart, AStartThatTakesItsTimeIsSaidWithItsStepAndNotToBeKilled) {
  const Config config = folder_.config(unique("slow"), 1);
  const std::string file = write(config);
  // The launcher stops itself at a point where the coordinator does not answer yet.
  const pid_t launcher = fork();
  if (launcher == 0) {
    LaunchOptions options;
    options.binary_dir = ATOLL_BIN_DIR;
    bool has_stopped = false;
    options.on_progress = [&](const StartReport& report) {
      if (report.step != "mapping memory" || has_stopped) return;
      has_stopped = true;
      raise(SIGSTOP);
    };
    const auto ended = run_foreground(config, [] {}, options);
    _exit(ended ? 0 : static_cast<int>(ended.error().code));
  }
  int stopped = 0;
  ASSERT_EQ(waitpid(launcher, &stopped, WUNTRACED), launcher);
  ASSERT_TRUE(WIFSTOPPED(stopped)) << describe_exit(stopped);
  const Ran status = runner_.atoll({"status", "-c", file});
  EXPECT_EQ(status.code, 0) << status.error;
  EXPECT_NE(status.out.find("the cluster starts: mapping memory"), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("wait until it runs"), std::string::npos) << status.out;
  const Ran json = runner_.atoll({"status", "--json", "-c", file});
  const Json told = Json::parse(json.out, nullptr, false);
  EXPECT_EQ(told.at("state"), "starting") << json.out;
  EXPECT_EQ(told.at("healthy"), false) << json.out;
  EXPECT_EQ(told.at("start").at("step"), "mapping memory") << json.out;
  EXPECT_TRUE(told.at("start").contains("eta_seconds")) << json.out;
  for (const Ran& ran : {status, json}) {
    EXPECT_EQ((ran.out + ran.error).find("down"), std::string::npos) << ran.out << ran.error;
  }
  const Ran refused = runner_.atoll({"storage", "ls", "-c", file});
  EXPECT_EQ(refused.code, 9) << refused.error;
  EXPECT_NE(refused.error.find("starts (mapping memory)"), std::string::npos) << refused.error;
  kill(launcher, SIGCONT);
  EXPECT_TRUE(eventually([&] {
    const Ran now = runner_.atoll({"status", "--json", "-c", file});
    return Json::parse(now.out, nullptr, false).value("state", "") == "running";
  }));
  EXPECT_FALSE(std::filesystem::exists(start_path(config)));
  EXPECT_EQ(runner_.atoll({"down", "-c", file}).code, 0);
  EXPECT_EQ(describe_exit(reap(launcher)), "ended with exit code 0");
}

TEST_F(RefusedStart, AStartThatWaitsForTheLockOfItsDataIsSaidAndNotToBeKilled) {
  const Config config = folder_.config(unique("waits"), 1);
  const std::string file = write(config);
  std::filesystem::create_directories(config.cluster.data_dir);
  const UniqueFd lock(open(directory_lock_path(config.cluster.data_dir).c_str(),
                           O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  LauncherProcess launcher(config);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(start_path(config)); }));
  const Ran status = runner_.atoll({"status", "-c", file});
  EXPECT_EQ(status.code, 0) << status.error;
  EXPECT_NE(status.out.find("the cluster starts: preparing memory and files"), std::string::npos)
      << status.out;
  EXPECT_EQ((status.out + status.error).find("down"), std::string::npos)
      << status.out << status.error;
  EXPECT_EQ(describe_exit(launcher.wait()), "ended with exit code 4");
  EXPECT_FALSE(std::filesystem::exists(config.cluster.run_dir));
}

}  // namespace
}  // namespace atolldb::test
