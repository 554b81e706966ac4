// `atoll checkpoint ls|verify` on the files of a dead cluster.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ops/cli/command.h"
#include "shared/file/posix_file_system.h"
#include "tests/engine/checkpoint/made_checkpoint.h"

namespace atolldb::cli {
namespace {

namespace fs = std::filesystem;

/// Checkpoint 1 is pinned by a backup, 2 is unneeded, 3 is the newest, 4 is of a failed attempt.
class CheckpointCommandTest : public testing::Test {
 protected:
  CheckpointCommandTest() {
    std::string pattern = (fs::temp_directory_path() / "atoll_checkpoint_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    savepoint_.cluster_uuid = {7, 7};
    savepoint_.scheme = DurabilityScheme::silor;
  }
  ~CheckpointCommandTest() override { fs::remove_all(folder_); }

  void fill() {
    make(10);
    EXPECT_TRUE(pin_snapshot(files_, folder_, savepoint_, 1, "atoll-backup-x"));
    make(20);
    make(30);
    EXPECT_TRUE(take_snapshot_id(files_, folder_, savepoint_));
    EXPECT_TRUE(test::make_checkpoint_files(files_, folder_, savepoint_.cluster_uuid, 4, 40, 41));
  }
  void make(uint64_t epoch) {
    EXPECT_EQ(test::make_checkpoint(files_, folder_, savepoint_, epoch, epoch + 2), "");
  }
  void damage(const std::string& name, uint64_t offset) const {
    std::fstream file(folder_ + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 1));
  }
  /// Runs a command of `atoll checkpoint` or another group. Returns its output; `problem_` gets the
  /// error.
  std::string output(std::vector<std::string> arguments, ExitCode expected = ExitCode::success,
                     const char* group = "checkpoint") {
    arguments.insert(arguments.begin(), {"atoll", group});
    arguments.insert(arguments.end(), {"--data-dir", folder_});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = run_command_line(static_cast<int>(argv.size()), argv.data());
    problem_ = testing::internal::GetCapturedStderr();
    EXPECT_EQ(code, static_cast<int>(expected)) << problem_;
    return testing::internal::GetCapturedStdout();
  }

  PosixFileSystem files_;
  std::string folder_;
  Savepoint savepoint_;
  std::string problem_;
};

TEST_F(CheckpointCommandTest, ListsCheckpointsWithTheirStates) {
  fill();
  EXPECT_TRUE(output({"ls"}).contains("REPLAY EPOCH"));
  const auto listed = nlohmann::json::parse(output({"ls", "--json"}));
  EXPECT_EQ(listed["schema_version"], 1);
  const auto& checkpoints = listed["checkpoints"];
  ASSERT_EQ(checkpoints.size(), 4u);
  const char* states[] = {"pinned", "unneeded", "newest", "unfinished"};
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(checkpoints[i]["id"], i + 1);
    EXPECT_EQ(checkpoints[i]["state"], states[i]);
    EXPECT_EQ(checkpoints[i]["files"], test::kMadeFiles);
    EXPECT_EQ(checkpoints[i]["replay_epoch"], i == 3 ? 0 : 10 * (i + 1));
    EXPECT_EQ(checkpoints[i]["end_epoch"], i == 3 ? 0 : 10 * (i + 1) + 2);
    EXPECT_EQ(checkpoints[i]["records"], i == 3 ? 0 : test::kMadeRecords);
  }
  damage("coordinator/checkpoint_2.meta", 40);
  EXPECT_NE(nlohmann::json::parse(output({"ls", "--json"}))["checkpoints"][1]["damage"], "");
}

TEST_F(CheckpointCommandTest, VerifiesTheNewestAndPinnedOnesAndNamesTheDamagedBlock) {
  fill();
  const auto intact = nlohmann::json::parse(output({"verify", "--json"}));
  EXPECT_EQ(intact["intact"], true);
  ASSERT_EQ(intact["checkpoints"].size(), 2u);
  EXPECT_EQ(intact["checkpoints"][0]["id"], 1);
  EXPECT_EQ(intact["checkpoints"][1]["id"], 3);
  EXPECT_EQ(intact["checkpoints"][1]["records"], test::kMadeRecords);
  const std::string file = "node0/checkpoint_3_0_1.atcp";
  damage(file, kIoBlockBytes + 100);
  EXPECT_TRUE(output({"verify"}, ExitCode::corruption).contains("corrupt"));
  EXPECT_TRUE(problem_.contains(folder_ + "/" + file)) << problem_;
  EXPECT_TRUE(problem_.contains("byte 4096")) << problem_;
  const auto damaged = nlohmann::json::parse(output({"verify", "--json"}, ExitCode::corruption));
  EXPECT_EQ(damaged["intact"], false);
  EXPECT_EQ(damaged["checkpoints"][0]["intact"], true);
  EXPECT_EQ(damaged["checkpoints"][1]["problems"].size(), 1u);
  // A missing file, and missing metadata.
  ASSERT_TRUE(fs::remove(folder_ + "/" + file));
  output({"verify"}, ExitCode::corruption);
  EXPECT_TRUE(problem_.contains("missing")) << problem_;
  ASSERT_TRUE(fs::remove(folder_ + "/coordinator/checkpoint_3.meta"));
  output({"verify"}, ExitCode::corruption);
  EXPECT_TRUE(problem_.contains("checkpoint_3.meta")) << problem_;
}

TEST_F(CheckpointCommandTest, SaysThatThereIsNoneYetOrThatTheSchemeHasNone) {
  ASSERT_TRUE(write_savepoint(files_, folder_, savepoint_));
  EXPECT_TRUE(output({"verify"}).contains("no checkpoint yet"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"ls"}, std::vector<std::string>{"verify"}}) {
    output(words, ExitCode::failed, "snapshot");
    EXPECT_TRUE(problem_.contains("scheme silor")) << problem_;
    EXPECT_TRUE(problem_.contains("atoll checkpoint")) << problem_;
  }
  savepoint_.scheme = DurabilityScheme::gleaned;
  for (int slot = 0; slot < 2; ++slot) {
    ASSERT_TRUE(write_savepoint(files_, folder_, savepoint_));
  }
  output({"ls"}, ExitCode::failed);
  EXPECT_TRUE(problem_.contains("gleaned")) << problem_;
  EXPECT_TRUE(problem_.contains("atoll snapshot")) << problem_;
}

}  // namespace
}  // namespace atolldb::cli
