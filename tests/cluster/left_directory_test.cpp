// A node's directory that is removed from the config. Its logs are deleted once a snapshot covers
// them, and the coordinator reports which files must stay.
#include <gtest/gtest.h>

#include "shared/kv/kv_request.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"

namespace atolldb::test {
namespace {

class LeftDirectoryTest : public testing::Test {
 protected:
  void start_with(const std::string& directory) {
    config_.nodes[0].directories = {folder_.path() + "/" + directory};
    std::ofstream(file_) << to_toml(config_);
    launcher_ = std::make_unique<LauncherProcess>(config_);
    ASSERT_EQ(launcher_->next_line(), "running");
  }
  void stop() {
    kill(launcher_->pid(), SIGTERM);
    EXPECT_EQ(launcher_->wait(), 0);
  }
  /// Commits a change, and takes a snapshot of it.
  void take() {
    auto session = SessionClient::connect(config_.cluster.run_dir, 0);
    ASSERT_TRUE(session) << session.error().message;
    KvRequest request;
    const uint64_t key = ++commits_;
    request.put(kLedgerStorage, ordered_index_key(key), std::as_bytes(std::span(&key, 1)));
    EXPECT_EQ((*session)->call("kv.txn", request.bytes()).status, Status::ok);
    const Ran ran = runner_.atoll({"snapshot", "take", "-c", file_});
    EXPECT_EQ(ran.code, 0) << ran.error;
  }
  /// Number of files of node 0 in this directory whose names begin with `prefix`.
  size_t count(const std::string& directory, const std::string& prefix) const {
    size_t files = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.path() + "/" + directory + "/node0")) {
      files += entry.path().filename().string().starts_with(prefix) ? 1 : 0;
    }
    return files;
  }
  std::string told() const { return read_text(log_path(config_, "coordinator")); }

  TestFolder folder_;
  Config config_ = folder_.config("left");
  std::string file_ = folder_.path() + "/left.toml";
  CliRunner runner_{folder_};
  std::unique_ptr<LauncherProcess> launcher_;
  uint64_t commits_ = 0;
};

TEST_F(LeftDirectoryTest, LosesItsLogsWhenTheyAreCoveredAndIsNamedWhileItIsNeeded) {
  config_.gleaner.interval = std::chrono::hours(1);  // only the test takes snapshots
  ASSERT_NO_FATAL_FAILURE(start_with("old"));
  ASSERT_TRUE(create_ledger(config_));
  take();
  stop();
  ASSERT_GT(count("old", "log_"), 0u);
  const size_t pages = count("old", "snapshot_");
  EXPECT_EQ(told().find("is not in the config any more"), std::string::npos);

  ASSERT_NO_FATAL_FAILURE(start_with("new"));
  const std::string warning = folder_.path() + "/old: is not in the config any more, but holds ";
  EXPECT_NE(told().find(warning), std::string::npos) << told();
  take();
  EXPECT_EQ(count("old", "log_"), 0u) << "a snapshot covers them";
  EXPECT_LE(count("old", "snapshot_"), pages);
  EXPECT_GT(count("new", "log_"), 0u);
  stop();
  const Ran verified = runner_.atoll({"snapshot", "verify", "-c", file_});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.error;
}

}  // namespace
}  // namespace atolldb::test
