// Notes of config files, and the holder of a lock.
#include "ops/launcher/cluster_note.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ops/launcher/lock_identity.h"
#include "ops/launcher/run_folder.h"
#include "shared/process/line_channel.h"
#include "shared/process/run_paths.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb::test {
namespace {

std::string config_file(const TestFolder& folder) {
  std::string path = folder.path() + "/c.toml";
  std::ofstream(path) << "\n";
  return canonical_config_file(path);
}

TEST(ClusterNoteTest, IsFoundByItsConfigFileWhileItsOwnerLives) {
  const TestFolder folder;
  const Config config = folder.config("noted");
  const std::string file = config_file(folder);
  EXPECT_FALSE(noted_cluster(file, config.cluster.data_dir));
  {
    const auto note = ClusterNote::leave(file, config);
    ASSERT_TRUE(note) << note.error().message;
    const auto found = noted_cluster(file, config.cluster.data_dir);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->launcher, this_process());
    EXPECT_EQ(found->cluster, "noted");
    EXPECT_EQ(found->run_dir, config.cluster.run_dir);
    const auto second = ClusterNote::leave(file, config);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ExitCode::already_running) << second.error().message;
    EXPECT_FALSE(noted_cluster(folder.path() + "/other.toml", config.cluster.data_dir));
  }
  EXPECT_FALSE(noted_cluster(file, config.cluster.data_dir));
  EXPECT_FALSE(std::filesystem::exists(note_path(geteuid(), file)));
}

TEST(ClusterNoteTest, OfADeadLauncherFindsNothingAndGoesWithTheNextStart) {
  const TestFolder folder;
  const Config config = folder.config("dead");
  const std::string file = config_file(folder);
  const pid_t launcher = fork();
  if (launcher == 0) {
    const auto note = ClusterNote::leave(file, config);
    kill(getpid(), SIGKILL);
  }
  EXPECT_EQ(describe_exit(reap(launcher)), "was killed by SIGKILL");
  EXPECT_TRUE(std::filesystem::exists(note_path(geteuid(), file)));
  EXPECT_FALSE(noted_cluster(file, config.cluster.data_dir));
  const auto other = ClusterNote::leave(folder.path() + "/other.toml", config);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_FALSE(std::filesystem::exists(note_path(geteuid(), file)));
}

TEST(ClusterNoteTest, OneThatWasReplacedIsLeftToItsNewOwner) {
  const TestFolder folder;
  const Config config = folder.config("cleaned");
  const std::string file = config_file(folder);
  std::optional<ClusterNote> first;
  {
    auto left = ClusterNote::leave(file, config);
    ASSERT_TRUE(left) << left.error().message;
    first.emplace(*std::move(left));
  }
  std::filesystem::remove(note_path(geteuid(), file));  // as a cleaner of /tmp does
  const auto second = ClusterNote::leave(file, config);
  ASSERT_TRUE(second) << second.error().message;
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(note_path(geteuid(), file)));
}

TEST(ClusterNoteTest, OfAnotherUserCountsForRootOnlyIfThatUserOwnsTheConfigFileOrTheData) {
  if (geteuid() != 0) GTEST_SKIP() << "this test gives files to another user: it needs root";
  constexpr uid_t kOther = 54323;
  const TestFolder folder;
  const Config config = folder.config("foreign");
  const std::string& data_dir = config.cluster.data_dir;
  const std::string file = config_file(folder);
  auto channel = make_channel();
  ASSERT_TRUE(channel);
  const pid_t other = fork();
  if (other == 0) {
    channel->first = UniqueFd();
    if (setgid(kOther) != 0 || setuid(kOther) != 0) _exit(1);
    {
      const auto note = ClusterNote::leave(file, config);
      send_line(channel->second.get(), note ? "left" : note.error().message);
      // Waits until the test has closed its end of the channel.
      pollfd closed{channel->second.get(), POLLIN, 0};
      poll(&closed, 1, -1);
    }
    _exit(0);
  }
  channel->second = UniqueFd();
  LineReader lines(channel->first.get());
  pollfd readable{channel->first.get(), POLLIN, 0};
  EXPECT_GT(poll(&readable, 1, 60'000), 0);
  EXPECT_EQ(lines.read(), std::vector<std::string>{"left"});
  EXPECT_FALSE(noted_cluster(file, data_dir)) << "root's commands would go to that user's process";
  std::filesystem::create_directories(data_dir);
  EXPECT_FALSE(noted_cluster(file, data_dir));
  for (const std::string& owned : {file, data_dir}) {
    EXPECT_EQ(chown(owned.c_str(), kOther, kOther), 0);
    EXPECT_TRUE(noted_cluster(file, data_dir)) << owned;
    EXPECT_EQ(chown(owned.c_str(), 0, 0), 0);
  }
  channel->first = UniqueFd();
  EXPECT_EQ(reap(other), 0);
  std::filesystem::remove_all("/tmp/atoll-" + std::to_string(kOther));
}

TEST(ClusterNoteTest, OnlyRegularFilesHaveOne) {
  const TestFolder folder;
  const std::string file = config_file(folder);
  std::filesystem::create_symlink(file, folder.path() + "/link.toml");
  EXPECT_EQ(canonical_config_file(folder.path() + "/link.toml"), file);
  EXPECT_EQ(canonical_config_file(folder.path() + "/./c.toml"), file);
  EXPECT_EQ(canonical_config_file(folder.path()), "");
  EXPECT_EQ(canonical_config_file(folder.path() + "/none"), "");
  EXPECT_EQ(canonical_config_file("/dev/null"), "");
  EXPECT_EQ(canonical_config_file(""), "");
}

TEST(LockHolderTest, AProcessThatTheFileNamesButThatDoesNotHoldTheLockDoesNotCount) {
  const TestFolder folder;
  const std::string path = folder.path() + "/lock";
  {
    auto lock = ProcessLock::acquire(path, "c", "cluster.data_dir");
    ASSERT_TRUE(lock) << lock.error().message;
    lock->set_run_dir("/r");
    ASSERT_TRUE(lock->write_processes({}));
    const auto holder = holder_of_lock(path);
    ASSERT_TRUE(holder && *holder);
    EXPECT_EQ((*holder)->launcher, this_process());
    EXPECT_EQ((*holder)->run_dir, "/r");
    // The copy names a live process, which holds the lock of another file.
    std::filesystem::copy_file(path, folder.path() + "/copy");
    const auto copied = holder_of_lock(folder.path() + "/copy");
    ASSERT_TRUE(copied);
    EXPECT_FALSE(*copied);
  }
  const auto free = holder_of_lock(path);
  ASSERT_TRUE(free);
  EXPECT_FALSE(*free) << "its process lives, but has let the lock go";
}

/// A new file system in a folder, unmounted by the destructor.
class TmpfsMount {
 public:
  explicit TmpfsMount(std::string path)
      : path_(std::move(path)), is_there_(mount("none", path_.c_str(), "tmpfs", 0, "") == 0) {}
  ~TmpfsMount() {
    if (is_there_) umount2(path_.c_str(), MNT_DETACH);
  }
  TmpfsMount(const TmpfsMount&) = delete;
  TmpfsMount& operator=(const TmpfsMount&) = delete;
  bool is_there() const { return is_there_; }

 private:
  std::string path_;
  bool is_there_;
};

TEST(LockHolderTest, ALockOfAFileWithThatInodeOnAnotherDeviceDoesNotCount) {
  const TestFolder folder;
  const TestFolder other;
  const TmpfsMount mounted(folder.path());
  const TmpfsMount also_mounted(other.path());
  if (!mounted.is_there() || !also_mounted.is_there()) {
    GTEST_SKIP() << "a tmpfs cannot be mounted here";
  }
  const std::string path = folder.path() + "/lock";
  const pid_t victim = fork();
  if (victim == 0) {
    const auto lock = ProcessLock::acquire(path, "c", "cluster.data_dir");
    pause();
    _exit(0);
  }
  EXPECT_TRUE(eventually([&] {
    const auto holder = holder_of_lock(path);
    return holder && *holder;
  }));
  // Simulates a lock file that another user has forged. It names the victim, which holds a lock on
  // a file with the same inode.
  const std::string forged = other.path() + "/lock";
  std::ofstream(forged) << "{}";
  struct stat held{};
  struct stat info{};
  EXPECT_EQ(stat(path.c_str(), &held), 0);
  EXPECT_EQ(stat(forged.c_str(), &info), 0);
  const ProcessId id = find_process(victim).value_or(ProcessId{});
  std::ofstream(forged) << nlohmann::json{
      {"identity", lock_identity(info)},
      {"launcher", {{"pid", id.pid}, {"start_time", id.start_time}}}};
  const auto holder = holder_of_lock(forged);
  EXPECT_TRUE(holder && !*holder) << "`atoll down` of root would end any process with a lock";
  kill(victim, SIGKILL);
  reap(victim);
  if (held.st_ino != info.st_ino) GTEST_SKIP() << "this kernel numbers the files of all tmpfs";
}

TEST(LockHolderTest, FilesThatAreNoneOrSayNothingHaveNoHolder) {
  const TestFolder folder;
  for (const char* text : {"", "[]", "{\"launcher\":7}", "{\"launcher\":{\"pid\":\"x\"}}"}) {
    const std::string path = folder.path() + "/lock";
    std::ofstream(path, std::ios::trunc) << text;
    const auto holder = holder_of_lock(path);
    ASSERT_TRUE(holder) << text;
    EXPECT_FALSE(*holder) << text;
  }
  EXPECT_FALSE(*holder_of_lock(folder.path() + "/none"));
}

TEST(RunFolderInPlace, AFolderThatWasReplacedIsLeftToItsNewOwner) {
  const TestFolder folder;
  const Config config = folder.config("moved");
  std::optional<RunFolder> first;
  {
    auto acquired = RunFolder::acquire(config);
    ASSERT_TRUE(acquired) << acquired.error().message;
    first.emplace(*std::move(acquired));
  }
  EXPECT_TRUE(first->is_in_place());
  std::filesystem::remove_all(config.cluster.run_dir);
  EXPECT_FALSE(first->is_in_place());
  const auto second = RunFolder::acquire(config);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_TRUE(second->is_in_place());
  EXPECT_FALSE(first->is_in_place());
  ASSERT_TRUE(RunFolder::write_file(endpoints_path(config), "{}"));
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(endpoints_path(config)));
  EXPECT_TRUE(std::filesystem::exists(lock_path(config)));
}

TEST(RunFolderInPlace, OneFolderByALinkIsRefused) {
  const TestFolder folder;
  Config config = folder.config("linked");
  config.durability.mode = DurabilityMode::durable;
  std::filesystem::create_directories(config.cluster.data_dir);
  std::filesystem::create_directory_symlink(config.cluster.data_dir, config.cluster.log_dir);
  const auto checked = check_distinct_folders(config);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ExitCode::config);
  for (const char* key : {"cluster.log_dir", "cluster.data_dir"}) {
    EXPECT_NE(checked.error().message.find(key), std::string::npos) << checked.error().message;
  }
  std::filesystem::remove(config.cluster.log_dir);
  EXPECT_TRUE(check_distinct_folders(config));
}

}  // namespace
}  // namespace atolldb::test
