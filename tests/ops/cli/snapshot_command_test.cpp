// `atoll snapshot ls|verify` on the files of a dead cluster.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "ops/cli/snapshot_data.h"
#include "tests/engine/snapshot/made_snapshot.h"

namespace atolldb::cli {
namespace {

namespace fs = std::filesystem;
using test::kMadePages;
using test::make_snapshot;
using test::make_snapshot_files;

/// Snapshot 1 is pinned, 2 has files that 4 refers to, 3 is unneeded, 4 is the newest, 5 is of a
/// failed job.
class SnapshotCommandTest : public testing::Test {
 protected:
  SnapshotCommandTest() {
    std::string pattern = (fs::temp_directory_path() / "atoll_snapshot_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    options_.data_dir = folder_;
    savepoint_.cluster_uuid = {7, 7};
  }
  ~SnapshotCommandTest() override { fs::remove_all(folder_); }

  void fill() {
    make(10, {});
    EXPECT_TRUE(pin_snapshot(files_, folder_, savepoint_, 1, "before the move"));
    make(20, {});
    make(30, {});
    make(40, {{2, 0, folder_, kMadePages + 1}});
    EXPECT_TRUE(take_snapshot_id(files_, folder_, savepoint_));
    EXPECT_EQ(make_snapshot_files(files_, folder_, savepoint_.cluster_uuid, 5, 50), "");
  }
  void make(uint64_t epoch, std::vector<SnapshotFilePlace> older) {
    EXPECT_EQ(make_snapshot(files_, folder_, savepoint_, epoch, std::move(older)), "");
  }
  void damage(const std::string& name, uint64_t offset) const {
    std::fstream file(folder_ + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 1));
  }
  std::string output(Result<void> (*command)(const ClusterChoice&, const SnapshotOptions&),
                     ExitCode expected = ExitCode::success) {
    testing::internal::CaptureStdout();
    const Result<void> done = command({}, options_);
    std::string text = testing::internal::GetCapturedStdout();
    problem_ = done ? "" : done.error().message;
    EXPECT_EQ(done ? ExitCode::success : done.error().code, expected) << problem_;
    return text;
  }
  nlohmann::json json(Result<void> (*command)(const ClusterChoice&, const SnapshotOptions&),
                      ExitCode expected = ExitCode::success) {
    options_.json = true;
    auto parsed = nlohmann::json::parse(output(command, expected));
    options_.json = false;
    return parsed;
  }

  PosixFileSystem files_;
  std::string folder_;
  SnapshotOptions options_;
  Savepoint savepoint_;
  std::string problem_;
};

TEST_F(SnapshotCommandTest, ListsSnapshotsWithTheirStates) {
  fill();
  const std::string text = output(list_snapshots);
  EXPECT_NE(text.find("before the move"), std::string::npos) << text;
  const auto listed = json(list_snapshots);
  EXPECT_EQ(listed["schema_version"], 1);
  const auto& snapshots = listed["snapshots"];
  ASSERT_EQ(snapshots.size(), 5u);
  const char* states[] = {"pinned", "in use", "unneeded", "newest", "unfinished"};
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(snapshots[i]["id"], i + 1);
    EXPECT_EQ(snapshots[i]["state"], states[i]);
    EXPECT_EQ(snapshots[i]["newest"], i == 3);
    EXPECT_EQ(snapshots[i]["epoch"], 10 * (i + 1));
    EXPECT_EQ(snapshots[i]["files"], 2);
    EXPECT_GE(snapshots[i]["bytes"], 2 * (kMadePages + 1) * kPageBytes);
  }
  EXPECT_EQ(snapshots[0]["pins"], nlohmann::json::array({"before the move"}));
  // A snapshot that the savepoint names and that is missing has a line, too.
  ASSERT_TRUE(fs::remove(folder_ + "/coordinator/snapshot_4.meta"));
  damage("coordinator/snapshot_1.meta", 40);
  const auto damaged = json(list_snapshots)["snapshots"];
  ASSERT_EQ(damaged.size(), 5u);
  EXPECT_TRUE(damaged[3]["epoch"].is_null());
  EXPECT_NE(damaged[0]["damage"], "");
}

TEST_F(SnapshotCommandTest, VerifiesTheNewestAndThePinned) {
  fill();
  EXPECT_NE(output(verify_snapshots).find("intact"), std::string::npos);
  const auto verified = json(verify_snapshots);
  EXPECT_TRUE(verified["intact"]);
  ASSERT_EQ(verified["snapshots"].size(), 2u);
  EXPECT_EQ(verified["snapshots"][0]["id"], 1);
  EXPECT_EQ(verified["snapshots"][1]["id"], 4);
  EXPECT_EQ(verified["snapshots"][1]["files"], 3);
  EXPECT_EQ(verified["snapshots"][1]["pages"], 3 * (kMadePages + 1));
  options_.id = 3;
  EXPECT_EQ(json(verify_snapshots)["snapshots"][0]["id"], 3);
  options_.id = 9;
  output(verify_snapshots, ExitCode::failed);
  EXPECT_NE(problem_.find("snapshot 9"), std::string::npos) << problem_;
}

TEST_F(SnapshotCommandTest, NamesCountsOfLivePagesThatAWalkContradicts) {
  fill();
  auto metadata = read_snapshot_metadata(files_, folder_, 4);
  ASSERT_TRUE(metadata) << metadata.error().message;
  for (LivePages& live : metadata->live) live.first_layer += 2;
  ASSERT_TRUE(write_snapshot_metadata(files_, folder_, *metadata));
  const auto verified = json(verify_snapshots, ExitCode::corruption);
  EXPECT_TRUE(verified["snapshots"][0]["intact"]);
  const auto problem = verified["snapshots"][1]["problems"].at(0).get<std::string>();
  EXPECT_NE(problem.find("storage 1 (accounts): the metadata count 3 live pages in the files of "
                         "snapshot 4 and node 0, a walk finds 1"),
            std::string::npos)
      << problem;
}

TEST_F(SnapshotCommandTest, NamesFileAndPageOfEveryDamage) {
  fill();
  damage("node0/snapshot_2.atsnap", 2 * kPageBytes + 1000);
  damage("coordinator/snapshot_4.atsnap", 1 * kPageBytes + 4095);
  const auto verified = json(verify_snapshots, ExitCode::corruption);
  EXPECT_FALSE(verified["intact"]);
  EXPECT_TRUE(verified["snapshots"][0]["intact"]) << "the pinned one does not refer to them";
  const auto& problems = verified["snapshots"][1]["problems"];
  ASSERT_EQ(problems.size(), 2u);
  const auto expect = [&](size_t i, const std::string& words) {
    EXPECT_NE(problems[i].get<std::string>().find(words), std::string::npos) << problems[i];
  };
  expect(0, folder_ + "/node0/snapshot_2.atsnap");
  expect(0, "page 2");
  expect(1, folder_ + "/coordinator/snapshot_4.atsnap");
  expect(1, "page 1");
  const std::string text = output(verify_snapshots, ExitCode::corruption);
  EXPECT_NE(text.find("corrupt"), std::string::npos) << text;
  options_.id = 1;
  output(verify_snapshots);
}

TEST_F(SnapshotCommandTest, NoticesFilesThatAreMissingOrShortAndDamagedMetadata) {
  fill();
  fs::resize_file(folder_ + "/node0/snapshot_4.atsnap", 2 * kPageBytes);
  output(verify_snapshots, ExitCode::corruption);
  EXPECT_NE(problem_.find("/node0/snapshot_4.atsnap"), std::string::npos) << problem_;
  ASSERT_TRUE(fs::remove(folder_ + "/node0/snapshot_4.atsnap"));
  output(verify_snapshots, ExitCode::corruption);
  EXPECT_NE(problem_.find("/node0/snapshot_4.atsnap"), std::string::npos) << problem_;
  damage("coordinator/snapshot_1.meta", 33);
  output(verify_snapshots, ExitCode::corruption);
  EXPECT_NE(problem_.find("/coordinator/snapshot_1.meta"), std::string::npos) << problem_;
}

TEST_F(SnapshotCommandTest, SaysWhenThereIsNoSnapshotOrNoData) {
  output(list_snapshots, ExitCode::failed);
  EXPECT_NE(problem_.find("--data-dir"), std::string::npos);
  ASSERT_TRUE(write_savepoint(files_, folder_, savepoint_));
  EXPECT_EQ(json(list_snapshots)["snapshots"].size(), 0u);
  EXPECT_NE(output(verify_snapshots).find("no snapshot yet"), std::string::npos);
  EXPECT_TRUE(json(verify_snapshots)["intact"]);
}

}  // namespace
}  // namespace atolldb::cli
