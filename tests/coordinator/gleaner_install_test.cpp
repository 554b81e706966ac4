// A snapshot is installed by all nodes at once, each in its share of the storages.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>

#include "coordinator/gleaner/divide_storages.h"
#include "coordinator/gleaner/gleaner_run.h"
#include "tests/engine/log/memory_file_system.h"

namespace atolldb {
namespace {

SnapshotStorage stored(uint32_t id, uint64_t records) {
  SnapshotStorage storage;
  storage.id = id;
  storage.records = records;
  return storage;
}

TEST(DivideStoragesTest, ThoseWithMostRecordsFirstInTurn) {
  const auto shares =
      divide_storages({stored(1, 10), stored(2, 500), stored(3, 10), stored(4, 70)}, 3);
  ASSERT_EQ(shares.size(), 3u);
  ASSERT_EQ(shares[0].size(), 2u);
  EXPECT_EQ(shares[0][0].id, 2u);
  EXPECT_EQ(shares[0][1].id, 3u);
  EXPECT_EQ(shares[1].at(0).id, 4u);
  EXPECT_EQ(shares[2].at(0).id, 1u);
}

/// Two nodes that answer as a test says.
class GleanerInstallTest : public testing::Test {
 protected:
  GleanerInstallTest() {
    config_.nodes.assign(2, NodeConfig{});
    snapshot_.id = 9;
    snapshot_.epoch = 77;
    for (uint32_t id = 1; id <= 3; ++id) snapshot_.storages.push_back(stored(id, id));
  }

  Config config_;
  test::MemoryFileSystem files_;
  SnapshotMetadata snapshot_;
  std::mutex mutex_;
  std::map<uint32_t, uint32_t> calls_;  // by node; guarded by mutex_
  std::set<uint32_t> storages_;         // likewise
};

TEST_F(GleanerInstallTest, AsksUntilAllAreDoneAndSumsUp) {
  const NodeCall call = [this](uint32_t node, std::string_view op, const Json& body) {
    EXPECT_EQ(op, "snapshot.install");
    EXPECT_EQ(body.at("snapshot"), 9);
    EXPECT_EQ(body.at("epoch"), 77);
    const std::lock_guard guard(mutex_);
    for (const Json& storage : body.at("storages"))
      storages_.insert(storage.at("id").get<uint32_t>());
    const bool is_done = ++calls_[node] == 3;
    Json answer = {{"done", is_done}, {"installed", 10 * calls_[node]}, {"dropped", node}};
    if (node == 1) answer["oldest_left"] = 4;
    return Result<Json>(answer);
  };
  GleanerRun run(config_, files_, call, make_silent_logger("install"));
  const auto report = run.install(snapshot_);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->installed, 60u);
  EXPECT_EQ(report->dropped, 1u);
  EXPECT_EQ(report->oldest_left, 4u);
  EXPECT_EQ(storages_, (std::set<uint32_t>{1, 2, 3}));
  EXPECT_EQ(run.status().at("phase"), "done");
  EXPECT_EQ(run.status().at("progress").at("installed"), 60);
  EXPECT_FALSE(run.status().at("progress").contains("oldest_left"));
}

TEST_F(GleanerInstallTest, WaitsForTheOthersWhenOneFailsAndReportsIt) {
  const NodeCall call = [this](uint32_t node, std::string_view, const Json&) -> Result<Json> {
    const std::lock_guard guard(mutex_);
    if (node == 0) return make_error(ExitCode::failed, "a page is unreadable");
    return Json{{"done", ++calls_[node] == 5}};
  };
  GleanerRun run(config_, files_, call, make_silent_logger("install"));
  const auto report = run.install(snapshot_);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("node 0: a page is unreadable"), std::string::npos);
  EXPECT_EQ(calls_[1], 5u);
  EXPECT_EQ(run.status().at("phase"), "not installed");
}

TEST_F(GleanerInstallTest, EndsWhenItIsCancelled) {
  GleanerRun* running = nullptr;
  const NodeCall call = [&](uint32_t, std::string_view, const Json&) -> Result<Json> {
    running->cancel();
    return Json{{"done", false}};
  };
  GleanerRun run(config_, files_, call, make_silent_logger("install"));
  running = &run;
  EXPECT_FALSE(run.install(snapshot_));
}

}  // namespace
}  // namespace atolldb
