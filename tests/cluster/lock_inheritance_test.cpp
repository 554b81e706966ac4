// Lock of the data directory: every process of a cluster holds it, and no other process, until the
// last one has ended (R31).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fstream>

#include "ops/launcher/data_lock.h"
#include "shared/process/line_channel.h"
#include "tests/cluster/launcher_process.h"

namespace atolldb::test {
namespace {

std::string lock_of(const Config& config) { return config.cluster.data_dir + "/lock"; }

/// Returns true if another process could take the lock now. Takes it for a moment.
bool is_free(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd.is_open() && flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
}

/// Returns true if one of the process's descriptors refers to this file.
bool has_open(pid_t pid, const std::string& path) {
  struct stat wanted{};
  if (stat(path.c_str(), &wanted) != 0) return false;
  std::error_code error;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    struct stat found{};
    if (stat(entry.path().c_str(), &found) == 0 && found.st_ino == wanted.st_ino &&
        found.st_dev == wanted.st_dev) {
      return true;
    }
  }
  return false;
}

TEST(LockInheritance, EveryProcessOfAClusterHasTheLockOfItsData) {
  TestFolder folder;
  const Config config = folder.config("locked");
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  const std::vector<pid_t> processes = processes_of("locked");
  EXPECT_GE(processes.size(), 3u) << "a coordinator and two nodes";
  for (const pid_t pid : processes) {
    for (const std::string& path : {lock_of(config), config.cluster.data_dir}) {
      EXPECT_TRUE(has_open(pid, path)) << read_text("/proc/" + std::to_string(pid) + "/comm");
    }
  }
  for (const std::string& path : {lock_of(config), config.cluster.data_dir}) {
    EXPECT_TRUE(has_open(launcher.pid(), path)) << path;
    EXPECT_FALSE(is_free(path)) << path;
  }
  const auto refused = lock_data(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::already_running) << refused.error().message;
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
  EXPECT_TRUE(is_free(lock_of(config)));
  EXPECT_TRUE(is_free(config.cluster.data_dir));
}

TEST(LockInheritance, NoSecondClusterGetsTheDataThoughTheLockFileWasRemoved) {
  TestFolder folder;
  const Config config = folder.config("unlocked");
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  std::filesystem::remove(lock_of(config));
  Config other = folder.config("other");
  other.cluster.data_dir = config.cluster.data_dir;
  LauncherProcess second(other);
  const std::string line = second.next_line();
  EXPECT_TRUE(line.starts_with(config.cluster.data_dir + ": is locked by a live cluster or tool"))
      << line;
  EXPECT_EQ(describe_exit(second.wait()), "ended with exit code 4");
  EXPECT_FALSE(std::filesystem::exists(lock_of(config))) << "a refused start makes no file";
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

TEST(LockInheritance, NoProcessIsStartedOnADirectoryThatHasTakenThePlaceOfTheLockedOne) {
  TestFolder folder;
  const Config config = folder.config("replaced");
  const std::string& data = config.cluster.data_dir;
  // The launcher waits after lock_data until a reader opens this pipe.
  const std::string pipe = running_config_path(config) + ".new";
  std::filesystem::create_directories(config.cluster.run_dir);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::ofstream(last_failure_path(config)) << "the launcher removes this after lock_data";
  LauncherProcess launcher(config);
  ASSERT_TRUE(eventually([&] { return !std::filesystem::exists(last_failure_path(config)); }));
  // Replaces the data directory, as if a volume was mounted over it.
  std::filesystem::rename(data, data + ".aside");
  std::filesystem::copy(data + ".aside", data);
  EXPECT_FALSE(read_text(pipe).empty());
  const std::string line = launcher.next_line();
  EXPECT_TRUE(line.starts_with(data + "/lock: is not the file that this start has locked")) << line;
  EXPECT_EQ(describe_exit(launcher.wait()), "ended with exit code 1");
  EXPECT_FALSE(std::filesystem::exists(log_path(config, "coordinator"))) << "it was started";
}

TEST(LockInheritance, TheLockStaysWhileOneProcessThatInheritedItLives) {
  TestFolder folder;
  const Config config = folder.config("inherited");
  auto channel = make_channel();
  ASSERT_TRUE(channel);
  // The launcher takes the lock, starts a child, and dies without cleaning up.
  const pid_t launcher = fork();
  if (launcher == 0) {
    const auto lock = lock_data(config);
    if (!lock || fork() != 0) _exit(lock ? 0 : 1);
    send_line(channel->second.get(), "the child lives");
    // Waits until the test has closed its end of the channel.
    channel->first = UniqueFd();
    pollfd closed{channel->second.get(), POLLIN, 0};
    poll(&closed, 1, -1);
    _exit(0);
  }
  channel->second = UniqueFd();
  LineReader lines(channel->first.get());
  std::vector<std::string> said;
  while (said.empty()) {
    pollfd readable{channel->first.get(), POLLIN, 0};
    ASSERT_GT(poll(&readable, 1, 60'000), 0);
    said = lines.read();
  }
  EXPECT_EQ(said.front(), "the child lives");
  ASSERT_EQ(reap(launcher), 0) << "the launcher could not lock the data";
  EXPECT_FALSE(is_free(lock_of(config))) << "a process of the dead cluster may still write";
  EXPECT_FALSE(is_free(config.cluster.data_dir));
  channel->first = UniqueFd();
  EXPECT_TRUE(eventually([&] { return is_free(lock_of(config)); }));
  EXPECT_TRUE(eventually([&] { return is_free(config.cluster.data_dir); }));
}

}  // namespace
}  // namespace atolldb::test
