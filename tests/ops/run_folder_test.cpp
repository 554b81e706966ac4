#include "ops/launcher/run_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

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
    // The number of the test itself with another start time: as after a reuse.
    if (!run_folder || !run_folder->write_processes({{getppid(), 1}})) _exit(1);
    kill(getpid(), SIGKILL);
  }
  reap(launcher);
  EXPECT_TRUE(RunFolder::acquire(config));  // and this test still lives
}

}  // namespace
}  // namespace atolldb::test
