// Locks of the data directory and of all directories that its data names (R31, R47, R50).
#include "ops/launcher/data_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <map>
#include <set>

#include "engine/log/savepoint.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "ops/launcher/adopt_data.h"
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
    ASSERT_EQ(stat(directory.c_str(), &info), 0) << directory;
    expected.insert(info.st_ino);
  }
  EXPECT_EQ(locked, expected);
  EXPECT_EQ((*lock)->fds().size(), 6u);
  EXPECT_EQ((*lock)->warnings(), std::vector<std::string>{});
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

template <typename T>
Error error_of(const Result<T>& result) {
  return result ? Error{ExitCode::success, ""} : result.error();
}

TEST(DataLock, NeitherAStartNorAToolGetsLiveDataThoughTheLockFilesWereRemoved) {
  TestFolder folder;
  const std::string fast = folder.path() + "/fast";
  const Config live = config_of(folder, "live", {fast});
  const std::string& data = live.cluster.data_dir;
  const auto lock = lock_data(live);
  ASSERT_TRUE(lock) << lock.error().message;
  std::filesystem::remove(data + "/lock");
  std::filesystem::remove(fast + "/lock");
  Config other = config_of(folder, "other", {});
  const Config shares_fast = config_of(folder, "shares", {fast});
  other.cluster.data_dir = data;
  // Each refusal waits seconds for processes that may be dying, so all run at once.
  std::vector<std::pair<std::string, std::future<Error>>> refusals;
  const auto expect_refused = [&](const std::string& directory, auto take) {
    refusals.emplace_back(directory, std::async(std::launch::async, take));
  };
  expect_refused(data, [&] { return error_of(lock_data(other)); });
  expect_refused(fast, [&] { return error_of(lock_data(shares_fast)); });
  expect_refused(data, [&] {
    PosixFileSystem files;
    return error_of(lock_dead_data("atoll snapshot", data, {}, files));
  });
  expect_refused(data, [&] {
    PosixFileSystem files;
    return error_of(adopt_data(other, AdoptionKind::moved, files));
  });
  for (auto& [directory, refusal] : refusals) {
    const Error error = refusal.get();
    EXPECT_EQ(error.code, ExitCode::already_running) << error.message;
    EXPECT_TRUE(error.message.starts_with(directory + ": ")) << error.message;
    EXPECT_NE(error.message.find("`fuser -v`"), std::string::npos) << error.message;
    EXPECT_FALSE(std::filesystem::exists(directory + "/lock")) << "nothing is made";
  }
}

TEST(DataLock, ALockFileThatWasReplacedByACopyNamesNoHolder) {
  TestFolder folder;
  const Config live = config_of(folder, "live", {});
  const std::string file = live.cluster.data_dir + "/lock";
  const auto lock = lock_data(live);
  ASSERT_TRUE(lock) << lock.error().message;
  std::filesystem::copy_file(file, file + ".copy");
  std::filesystem::rename(file + ".copy", file);
  const Error error = error_of(lock_data(live));
  EXPECT_EQ(error.code, ExitCode::already_running) << error.message;
  EXPECT_NE(error.message.find("does not name: "), std::string::npos) << error.message;
}

TEST(DataLock, IsInPlaceUntilADirectoryOrALockFileIsReplaced) {
  TestFolder folder;
  const std::string fast = folder.path() + "/fast";
  const std::string aside = folder.path() + "/aside";
  const Config config = config_of(folder, "one", {fast});
  const auto lock = lock_data(config);
  ASSERT_TRUE(lock && *lock) << lock.error().message;
  for (const std::string& directory : {config.cluster.data_dir, fast}) {
    for (const std::string& replaced : {directory, directory + "/lock"}) {
      EXPECT_TRUE((*lock)->check_in_place());
      std::filesystem::rename(replaced, aside);
      const Error missing = error_of((*lock)->check_in_place());
      std::filesystem::copy(aside, replaced);
      for (const Error& error : {missing, error_of((*lock)->check_in_place())}) {
        EXPECT_EQ(error.code, ExitCode::failed) << replaced;
        EXPECT_TRUE(error.message.starts_with(directory + "/lock: is not")) << error.message;
      }
      std::filesystem::remove_all(replaced);
      std::filesystem::rename(aside, replaced);
    }
  }
  EXPECT_TRUE((*lock)->check_in_place());
}

TEST(DataLock, OfACopyIsRefusedAndSparesTheProcessesThatTheCopiedFileNames) {
  TestFolder folder;
  Config config = config_of(folder, "first", {folder.path() + "/fast"});
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  auto lock = lock_data(config);
  ASSERT_TRUE(lock && *lock) << lock.error().message;
  ASSERT_TRUE((*lock)->write_processes({*find_process(child)}));
  Config copy = config_of(folder, "copy", {folder.path() + "/copied"});
  std::filesystem::copy(config.cluster.data_dir, copy.cluster.data_dir);
  std::filesystem::copy(folder.path() + "/fast", folder.path() + "/copied");
  auto refused = lock_data(copy);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::identity) << refused.error().message;
  EXPECT_TRUE(refused.error().message.starts_with(copy.cluster.data_dir + ": "))
      << refused.error().message;
  EXPECT_TRUE(find_process(child));
  // Now only the log directory is a copy.
  config.nodes[1].directories = {folder.path() + "/copied"};
  (*lock)->forget_processes();
  *lock = std::nullopt;
  refused = lock_data(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::identity) << refused.error().message;
  EXPECT_TRUE(refused.error().message.starts_with(folder.path() + "/copied: "))
      << refused.error().message;
  EXPECT_TRUE(find_process(child));
  kill(child, SIGKILL);
  reap(child);
}

TEST(DataLock, HasTheDirectoriesThatTheDataNameAndTheConfigDoesNot) {
  TestFolder folder;
  PosixFileSystem files;
  const std::string old = folder.path() + "/old";
  Config config = config_of(folder, "first", {old, folder.path() + "/older"});
  ASSERT_TRUE(lock_data(config));
  Savepoint savepoint;
  savepoint.largest_incarnation = 1;
  savepoint.incarnations = {{1, 1, {}, {{1, 0, old}}}};
  ASSERT_TRUE(write_savepoint(files, config.cluster.data_dir, savepoint));
  SnapshotMetadata metadata;
  metadata.id = 1;
  metadata.files = {{1, 1, folder.path() + "/older", 2}};
  ASSERT_TRUE(write_snapshot_metadata(files, config.cluster.data_dir, metadata));
  config.nodes[1].directories = {folder.path() + "/new"};
  auto lock = lock_data(config);
  ASSERT_TRUE(lock && *lock) << lock.error().message;
  EXPECT_EQ((*lock)->fds().size(), 8u);
  // Another cluster must be refused any of these directories.
  for (const char* left : {"/old", "/older"}) {
    const auto refused = lock_data(config_of(folder, "second", {folder.path() + left}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ExitCode::already_running) << refused.error().message;
  }
  *lock = std::nullopt;
  // A directory that is not configured was replaced by a copy.
  std::filesystem::rename(old, folder.path() + "/aside");
  std::filesystem::copy(folder.path() + "/aside", old);
  lock = lock_data(config);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ExitCode::identity) << lock.error().message;
  EXPECT_TRUE(lock.error().message.starts_with(old + ": ")) << lock.error().message;
  // A directory that no longer exists is left to recovery, which knows whether it is needed.
  std::filesystem::remove_all(old);
  EXPECT_TRUE(lock_data(config));
}

/// Records which directory entries were synced.
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
