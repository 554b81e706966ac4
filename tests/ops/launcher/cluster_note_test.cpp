// Notes of config files, and the holder of a lock.
#include "ops/launcher/cluster_note.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ops/launcher/run_folder.h"
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
  EXPECT_FALSE(noted_cluster(file));
  {
    const auto note = ClusterNote::leave(file, config);
    ASSERT_TRUE(note) << note.error().message;
    const auto found = noted_cluster(file);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->launcher, this_process());
    EXPECT_EQ(found->cluster, "noted");
    EXPECT_EQ(found->run_dir, config.cluster.run_dir);
    const auto second = ClusterNote::leave(file, config);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ExitCode::already_running) << second.error().message;
    EXPECT_FALSE(noted_cluster(folder.path() + "/other.toml"));
  }
  EXPECT_FALSE(noted_cluster(file));
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
  EXPECT_FALSE(noted_cluster(file));
  const auto other = ClusterNote::leave(folder.path() + "/other.toml", config);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_FALSE(std::filesystem::exists(note_path(geteuid(), file)));
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
