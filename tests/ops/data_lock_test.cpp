#include "ops/launcher/data_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <set>

#include "shared/file/posix_file_system.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb::test {
namespace {

Config config_of(const TestFolder& folder, const std::string& name,
                 std::vector<std::string> directories) {
  Config config = folder.config(name);
  config.nodes[1].directories = std::move(directories);
  return config;
}

std::vector<std::string> names_in(const std::string& directory) {
  PosixFileSystem files;
  return files.list(directory).value_or(std::vector<std::string>{});
}

TEST(DataLock, IsOfTheDataDirectoryAndEachLogDirectoryOnce) {
  TestFolder folder;
  const std::string fast = folder.path() + "/fast";
  const std::string link = folder.path() + "/link";
  std::filesystem::create_directories(fast);
  std::filesystem::create_directory_symlink(fast, link);
  Config config = config_of(folder, "one", {fast, link, fast + "/.", fast});
  config.nodes[0].directories = {config.cluster.data_dir, folder.path() + "/big"};
  const auto lock = lock_data(config);
  ASSERT_TRUE(lock) << lock.error().message;
  ASSERT_TRUE(*lock);
  std::set<ino_t> locked;
  for (const int fd : (*lock)->fds()) {
    struct stat info{};
    ASSERT_EQ(fstat(fd, &info), 0);
    locked.insert(info.st_ino);
  }
  std::set<ino_t> expected;
  for (const std::string& directory : {config.cluster.data_dir, fast, folder.path() + "/big"}) {
    struct stat info{};
    ASSERT_EQ(stat((directory + "/lock").c_str(), &info), 0) << directory;
    expected.insert(info.st_ino);
  }
  EXPECT_EQ(locked, expected);
  EXPECT_EQ((*lock)->fds().size(), 3u);
}

TEST(DataLock, RefusesADirectoryThatALiveClusterHasAndOneThatAStoppedClusterKeeps) {
  TestFolder folder;
  const std::string fast = folder.path() + "/fast";
  const Config first = config_of(folder, "first", {fast});
  const Config second = config_of(folder, "second", {fast});
  {
    const auto lock = lock_data(first);
    ASSERT_TRUE(lock) << lock.error().message;
    const auto refused = lock_data(second);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ExitCode::already_running);
    const std::string& message = refused.error().message;
    EXPECT_NE(message.find("cluster \"first\""), std::string::npos) << message;
    EXPECT_NE(message.find(fast), std::string::npos) << message;
  }
  const auto refused = lock_data(second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::failed);
  EXPECT_NE(refused.error().message.find(fast), std::string::npos) << refused.error().message;
  EXPECT_EQ(names_in(second.cluster.data_dir), std::vector<std::string>{"lock"});
  EXPECT_TRUE(lock_data(first)) << "nothing is held after a refusal";
}

/// Notes which directory entries were synced.
class NotingCalls : public SystemCalls {
 public:
  int open(const char* path, int flags, mode_t mode) override {
    const int fd = SystemCalls::open(path, flags, mode);
    if (fd >= 0) paths_[fd] = path;
    return fd;
  }
  int fsync(int descriptor) override {
    synced.insert(std::filesystem::path(paths_[descriptor]).lexically_normal().string());
    return SystemCalls::fsync(descriptor);
  }
  std::set<std::string> synced;

 private:
  std::map<int, std::string> paths_;
};

TEST(DataLock, SyncsEachNewAncestorOfItsDirectories) {
  TestFolder folder;
  Config config = config_of(folder, "deep", {folder.path() + "/x/y/fast"});
  config.cluster.data_dir = folder.path() + "/p/q/data";
  NotingCalls calls;
  PosixFileSystem files({}, calls);
  const auto lock = lock_data(config, files);
  ASSERT_TRUE(lock) << lock.error().message;
  for (const char* parent : {"", "/p", "/p/q", "/x", "/x/y"}) {
    EXPECT_TRUE(calls.synced.contains(folder.path() + parent)) << folder.path() << parent;
  }
}

}  // namespace
}  // namespace atolldb::test
