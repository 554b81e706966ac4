// The run folder: its lock, its content, and the processes of a dead launcher (R31, R49).
#include "ops/launcher/run_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ops/launcher/lock_holder.h"
#include "shared/process/run_paths.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb::test {
namespace {

TEST(RunFolderTest, ItIsPrivateLockedAndGoesWithItsOwner) {
  TestFolder folder;
  const Config config = folder.config("mine");
  {
    const auto first = RunFolder::acquire(config);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_TRUE(first->leftovers().empty());
    struct stat info{};
    ASSERT_EQ(stat(config.cluster.run_dir.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0700u);
    EXPECT_EQ(running_launcher(config)->pid, getpid());
    const auto second = RunFolder::acquire(config);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ExitCode::already_running);
  }
  EXPECT_FALSE(std::filesystem::exists(config.cluster.run_dir));
  EXPECT_FALSE(running_launcher(config));
}

TEST(RunFolderTest, WhatADeadLauncherLeftIsRemovedAndSaidAndItsChildrenAreEnded) {
  TestFolder folder;
  const Config config = folder.config("dead");
  const pid_t orphan = fork();
  if (orphan == 0) {
    pause();
    _exit(0);
  }
  const ProcessId orphan_id = *find_process(orphan);
  const pid_t launcher = fork();
  if (launcher == 0) {
    auto run_folder = RunFolder::acquire(config);
    if (!run_folder || !run_folder->write_processes({orphan_id})) _exit(1);
    if (!RunFolder::write_file(endpoints_path(config), "{}")) _exit(1);
    kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(describe_exit(reap(launcher)), "was killed by SIGKILL");
  ASSERT_TRUE(std::filesystem::exists(endpoints_path(config)));
  const auto next = RunFolder::acquire(config);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_NE(next->leftovers().find("pid " + std::to_string(launcher)), std::string::npos)
      << next->leftovers();
  EXPECT_FALSE(std::filesystem::exists(endpoints_path(config)));
  EXPECT_FALSE(is_alive(orphan_id));
  reap(orphan);
}

TEST(RunFolderTest, AnotherProcessWithTheNumberOfADeadChildIsSpared) {
  TestFolder folder;
  const Config config = folder.config("reused");
  const pid_t launcher = fork();
  if (launcher == 0) {
    auto run_folder = RunFolder::acquire(config);
    // Writes the pid of the test itself with another start time, as if the pid was reused.
    if (!run_folder || !run_folder->write_processes({{getppid(), 1}})) _exit(1);
    kill(getpid(), SIGKILL);
  }
  reap(launcher);
  EXPECT_TRUE(RunFolder::acquire(config));  // the test has not been killed either
}

/// A process that waits until it is killed.
class Orphan {
 public:
  Orphan() : pid_(fork()) {
    if (pid_ != 0) return;
    pause();
    _exit(0);
  }
  ~Orphan() {
    kill(pid_, SIGKILL);
    reap(pid_);
  }
  Orphan(const Orphan&) = delete;
  Orphan& operator=(const Orphan&) = delete;
  ProcessId id() const { return find_process(pid_).value_or(ProcessId{pid_, 0}); }
  bool lives() const { return find_process(pid_).has_value(); }

 private:
  pid_t pid_;
};

/// Leaves the lock file of a cluster whose launcher was killed and whose `child` lives.
void leave_lock(const Config& config, const ProcessId& child) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    auto run_folder = RunFolder::acquire(config);
    if (!run_folder || !run_folder->write_processes({child})) _exit(1);
    kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(describe_exit(reap(launcher)), "was killed by SIGKILL");
}

/// Changes the file in place, so that its inode stays the same.
void write_in_place(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::in | std::ios::out) << text;
  std::filesystem::resize_file(path, text.size());
}

TEST(RunFolderTest, ACopiedLockFileEndsNoProcess) {
  TestFolder folder;
  const Config config = folder.config("locked");
  const Config copy = folder.config("copied");
  const Orphan orphan;
  ASSERT_NO_FATAL_FAILURE(leave_lock(config, orphan.id()));
  std::filesystem::create_directories(copy.cluster.run_dir);
  std::filesystem::copy_file(lock_path(config), lock_path(copy));
  ASSERT_TRUE(RunFolder::acquire(copy));
  EXPECT_TRUE(orphan.lives()) << "the copy is another inode";
  // A start-up with the original file ends the orphan.
  ASSERT_TRUE(RunFolder::acquire(config));
  EXPECT_FALSE(orphan.lives());
}

TEST(RunFolderTest, ALockFileOfAnotherBootOrPlaceEndsNoProcess) {
  TestFolder folder;
  const Config config = folder.config("changed");
  for (const char* part : {"boot_id", "pid_namespace", "device", "inode", "identity"}) {
    const Orphan orphan;
    ASSERT_NO_FATAL_FAILURE(leave_lock(config, orphan.id()));
    auto lock = nlohmann::json::parse(read_text(lock_path(config)));
    if (std::string(part) == "identity") {
      lock.erase("identity");  // as earlier versions of the program wrote it
    } else {
      auto& value = lock.at("identity").at(part);
      if (value.is_number()) {
        value = value.get<uint64_t>() + 1;
      } else {
        value = "another";
      }
    }
    write_in_place(lock_path(config), lock.dump());
    EXPECT_FALSE(running_launcher(config));
    ASSERT_TRUE(RunFolder::acquire(config));
    EXPECT_TRUE(orphan.lives()) << part;
  }
}

TEST(RunFolderTest, ALockFileOnAClonedVolumeNamesNoLauncher) {
  TestFolder folder;
  const Config config = folder.config("cloned");
  const auto run_folder = RunFolder::acquire(config);
  ASSERT_TRUE(run_folder) << run_folder.error().message;
  auto holder = holder_of_lock(lock_path(config));
  ASSERT_TRUE(holder && *holder);
  EXPECT_EQ((*holder)->launcher, this_process());
  // Simulates a clone, which has the same inode on another device. The test changes the device in
  // the lock file, as if the file was made on the original.
  auto lock = nlohmann::json::parse(read_text(lock_path(config)));
  lock["identity"]["device"] = lock["identity"]["device"].get<uint64_t>() + 1;
  write_in_place(lock_path(config), lock.dump());
  holder = holder_of_lock(lock_path(config));
  ASSERT_TRUE(holder);
  EXPECT_FALSE(*holder) << "`atoll down` would stop the original";
}

TEST(RunFolderTest, NoProcessOfALauncherThatLivesIsEnded) {
  TestFolder folder;
  const Config config = folder.config("lives");
  const Orphan orphan;
  ASSERT_NO_FATAL_FAILURE(leave_lock(config, orphan.id()));
  auto lock = nlohmann::json::parse(read_text(lock_path(config)));
  const ProcessId self = this_process();
  lock["launcher"] = {{"pid", self.pid}, {"start_time", self.start_time}};
  write_in_place(lock_path(config), lock.dump());
  ASSERT_TRUE(RunFolder::acquire(config));
  EXPECT_TRUE(orphan.lives());
}

TEST(RunFolderTest, AStartThatIsRefusedLeavesAnEndpointElsewhereToItsOwner) {
  TestFolder folder;
  Config config = folder.config("endpoint");
  const std::string socket = folder.path() + "/control.sock";
  config.control.endpoint = "ipc://" + socket;
  std::ofstream(socket) << "of a live cluster of this config file, with another run folder";
  {
    ASSERT_TRUE(RunFolder::acquire(config));
  }
  EXPECT_TRUE(std::filesystem::exists(socket));
  {
    auto run_folder = RunFolder::acquire(config);
    ASSERT_TRUE(run_folder) << run_folder.error().message;
    run_folder->take_endpoint();
    EXPECT_FALSE(std::filesystem::exists(socket)) << "of a dead cluster";
    std::ofstream(socket) << "of this cluster";
  }
  EXPECT_FALSE(std::filesystem::exists(socket));
}

TEST(RunFolderTest, ALockFileThatIsALinkIsRefusedAndWhatItLeadsToIsAsItWas) {
  TestFolder folder;
  const Config config = folder.config("link");
  const std::string target = folder.path() + "/target";
  std::ofstream(target) << "of another user";
  std::filesystem::create_directories(config.cluster.run_dir);
  std::filesystem::create_symlink(target, lock_path(config));
  const auto refused = RunFolder::acquire(config);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with(lock_path(config) + ": is a link"))
      << refused.error().message;
  EXPECT_EQ(read_text(target), "of another user");
}

TEST(RunFolderTest, AFolderThatOtherUsersCouldReplaceIsRefused) {
  TestFolder folder;
  Config config = folder.config("open");
  const std::string parent = folder.path() + "/parent";
  std::filesystem::create_directories(parent);
  config.cluster.run_dir = parent + "/run";
  EXPECT_TRUE(RunFolder::acquire(config));
  for (const mode_t mode : {0777u, 0707u, 0702u}) {
    ASSERT_EQ(chmod(parent.c_str(), mode), 0);
    const auto refused = RunFolder::acquire(config);
    ASSERT_FALSE(refused) << mode;
    EXPECT_TRUE(refused.error().message.starts_with(parent + ": ")) << refused.error().message;
    EXPECT_NE(refused.error().message.find("cluster.run_dir"), std::string::npos);
  }
  ASSERT_EQ(chmod(parent.c_str(), 01777), 0);
  EXPECT_TRUE(RunFolder::acquire(config)) << "as /tmp is: only its owner renames a folder in it";
  std::filesystem::create_directories(folder.path() + "/elsewhere");
  std::filesystem::create_directory_symlink(folder.path() + "/elsewhere", config.cluster.run_dir);
  const auto link = RunFolder::acquire(config);
  ASSERT_FALSE(link);
  EXPECT_NE(link.error().message.find("is a link"), std::string::npos) << link.error().message;
}

TEST(RunFolderTest, AFolderThatAnotherUserMadeIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "this test gives a folder to another user: it needs root";
  constexpr uid_t kNobody = 65534;
  TestFolder folder;
  Config config = folder.config("foreign");
  const std::string parent = folder.path() + "/parent";
  config.cluster.run_dir = parent + "/run";
  std::filesystem::create_directories(config.cluster.run_dir);
  for (const std::string& foreign : {parent, config.cluster.run_dir}) {
    ASSERT_EQ(chown(foreign.c_str(), kNobody, kNobody), 0);
    const auto refused = RunFolder::acquire(config);
    ASSERT_FALSE(refused) << foreign;
    EXPECT_TRUE(refused.error().message.starts_with(foreign + ": belongs to user 65534"))
        << refused.error().message;
    ASSERT_EQ(chown(foreign.c_str(), 0, 0), 0);
  }
  EXPECT_TRUE(RunFolder::acquire(config));
  // Simulates root after `su`, which keeps XDG_RUNTIME_DIR: the parent belongs to another user.
  ASSERT_EQ(chown(parent.c_str(), kNobody, kNobody), 0);
  config.cluster.run_dir = parent + "/atoll/run";
  EXPECT_FALSE(RunFolder::acquire(config));
  EXPECT_FALSE(std::filesystem::exists(parent + "/atoll")) << "its owner could not write there";
}

}  // namespace
}  // namespace atolldb::test
