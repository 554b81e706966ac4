// Two clusters whose configs name the same directory: the second must never change the first one's
// logs.
#include <sys/stat.h>

#include <map>

#include "tests/cluster/cli_run.h"

namespace atolldb::test {
namespace {

namespace fs = std::filesystem;

/// Returns the inodes of all files below a directory, by path. A replaced file has another inode.
std::map<std::string, ino_t> files_below(const std::string& directory) {
  std::map<std::string, ino_t> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    struct stat info{};
    if (entry.is_regular_file() && stat(entry.path().c_str(), &info) == 0) {
      files[entry.path().string()] = info.st_ino;
    }
  }
  return files;
}

std::string config_with(const CliRunner& runner, const std::string& name,
                        const std::string& directory) {
  const std::string path = runner.folder() + "/" + name + ".toml";
  std::ofstream(path)
      << "[cluster]\nname = \"" << name << "\"\n[[node]]\n[[node]]\ndirectories = [\"" << directory
      << "\"]\n[memory]\nvolatile_pool = \"16MiB\"\n"
      << "log_buffer = \"2MiB\"\nexchange = \"2MiB\"\n[durability]\nlog_file_size = \"1MiB\"\n";
  return path;
}

void expect_refused(const Ran& ran, int code, const std::string& directory) {
  EXPECT_EQ(ran.code, code) << ran.error;
  EXPECT_NE(ran.error.find("\"first\""), std::string::npos) << ran.error;
  EXPECT_NE(ran.error.find(directory), std::string::npos) << ran.error;
  EXPECT_NE(ran.error.find("its own"), std::string::npos) << ran.error;
}

TEST(SharedDirectoryTest, ASecondClusterIsRefusedAndMovesNothingWhetherTheFirstRunsOrNot) {
  TestFolder folder;
  const CliRunner runner(folder);
  const std::string shared = folder.path() + "/shared";
  const std::string first = config_with(runner, "first", shared);
  const std::string second = config_with(runner, "second", shared);
  {
    CliCluster cluster(runner, first);
    const Ran made = runner.atoll({"storage", "create", "t", "--type", "mastertree", "-c", first});
    EXPECT_EQ(made.code, 0) << made.error;
    const auto before = files_below(shared);
    EXPECT_GE(before.size(), 3u) << "a log, the owner, the lock";
    expect_refused(runner.atoll({"up", "-c", second}), 4, shared);
    expect_refused(runner.atoll({"up", "--discard-data", "-c", second}), 4, shared);
    EXPECT_EQ(files_below(shared), before);
    const Ran ran = runner.atoll(
        {"bench", "ycsb", "-c", first, "--records", "1000", "--seconds", "1", "--warmup", "0"});
    EXPECT_EQ(ran.code, 0) << ran.error;
    const Ran down = cluster.down();
    EXPECT_EQ(down.code, 0) << down.error;
  }
  const auto before = files_below(shared);
  expect_refused(runner.atoll({"up", "-c", second}), 1, shared);
  expect_refused(runner.atoll({"up", "--discard-data", "-c", second}), 1, shared);
  EXPECT_EQ(files_below(shared), before);
  const Ran verified = runner.atoll({"wal", "verify", "-c", first});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.error;
  // The first cluster can still discard its data, and still owns the directory.
  {
    const Ran up = runner.atoll({"up", "--discard-data", "-c", first});
    EXPECT_EQ(up.code, 0) << up.error;
    EXPECT_TRUE(fs::exists(shared + "/discarded-0/node1"));
    const Ran down = runner.atoll({"down", "-c", first});
    EXPECT_EQ(down.code, 0) << down.error;
  }
  expect_refused(runner.atoll({"up", "-c", second}), 1, shared);
}

}  // namespace
}  // namespace atolldb::test
