// `atoll export` of real clusters with durability.scheme = "silor": running, stopped, killed and
// restored.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/recovery/salvage.h"
#include "tests/cluster/export_cluster.h"

namespace atolldb::test {
namespace {

/// Only the tests and their exports take checkpoints.
class CheckpointExportTest : public ExportCluster {
 protected:
  CheckpointExportTest() {
    config_.durability.scheme = DurabilityScheme::silor;
    config_.durability.checkpoint_interval = std::chrono::milliseconds(0);
    config_.gleaner.disk_reserve = 1;
    std::ofstream(file_) << to_toml(config_);
  }
};

TEST_F(CheckpointExportTest, WritesTheNewestState) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto files = fill(rounds(5'000, kListRecords));
  Tables expected;
  for (const auto& [table, csv] : files) expected[table] = rows_of({csv});
  const auto compare = [&](const std::string& directory) { expect_tables(directory, expected); };
  // The first export takes a checkpoint. What follows is only in the log.
  const Ran first = export_to(path("first"), {"--parts", "4"});
  ASSERT_EQ(first.code, 0) << first.error;
  compare("first");
  ASSERT_EQ(import("heap", files.at("heap")).code, 0);
  expected["heap"].merge(rows_of({files.at("heap")}));
  ASSERT_EQ(export_to(path("second")).code, 0);
  compare("second");
  const auto refuse = [&](std::vector<std::string> more, const std::string& why) {
    const Ran ran = export_to(path("refused"), std::move(more));
    EXPECT_EQ(ran.code, 2) << ran.error;
    EXPECT_NE(ran.error.find(why), std::string::npos) << ran.error;
    EXPECT_FALSE(std::filesystem::exists(path("refused")));
  };
  refuse({"--snapshot", "1"}, "--snapshot: the cluster has durability.scheme");
  refuse({"--resume"}, "--resume: the cluster has durability.scheme");
  refuse({"--table", "none"}, "has no such table");
  stop();
  ASSERT_EQ(export_to(path("stopped")).code, 0);
  compare("stopped");
}

TEST_F(CheckpointExportTest, HasWhatWasAcknowledgedBeforeAKill) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto files = fill(rounds(1'000, kListRecords));
  Tables expected;
  for (const auto& [table, csv] : files) expected[table] = rows_of({csv});
  ASSERT_EQ(atoll({"checkpoint", "take"}).code, 0);
  const auto import_heap = [&] {
    ASSERT_EQ(import("heap", files.at("heap")).code, 0);
    expected["heap"].merge(rows_of({files.at("heap")}));
  };
  const auto compare = [&](const std::string& directory) {
    const Ran ran = export_to(path(directory));
    ASSERT_EQ(ran.code, 0) << ran.error;
    expect_tables(directory, expected);
  };
  ASSERT_NO_FATAL_FAILURE(import_heap());
  stop();
  // This start-up stores the cut of the first incarnation. Its own incarnation has no commits.
  ASSERT_NO_FATAL_FAILURE(start());
  kill_all();
  ASSERT_NO_FATAL_FAILURE(compare("killed-at-once"));
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(import_heap());
  kill_all();
  ASSERT_NO_FATAL_FAILURE(compare("killed"));
  // A restored cluster has the cuts of all incarnations, and was never started.
  const Ran backup = atoll({"backup", path("backups")});
  ASSERT_EQ(backup.code, 0) << backup.error;
  const Ran restore = runner_.atoll({"restore", path("backups"), "--to", path("restored")});
  ASSERT_EQ(restore.code, 0) << restore.error;
  const Ran ran = runner_.atoll(
      {"export", path("of-restored"), "--schema", schema_, "--data-dir", path("restored")});
  ASSERT_EQ(ran.code, 0) << ran.error;
  expect_tables("of-restored", expected);
}

TEST_F(CheckpointExportTest, HasStoragesThatWereCreatedJustBeforeAKill) {
  // An idle cluster closes no epoch, so the epoch of the creations is never durable.
  ASSERT_NO_FATAL_FAILURE(start());
  create_storages();
  kill_all();
  Tables expected = {{"tree", {}}, {"heap", {}}, {"map", {}}};
  const std::vector<std::string> chosen = {"--table", "tree", "--table", "heap", "--table", "map"};
  const Ran empty = export_to(path("empty"), chosen);
  ASSERT_EQ(empty.code, 0) << empty.error;
  expect_tables("empty", expected);
  // The next start-up has the same storages.
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_EQ(atoll({"checkpoint", "take"}).code, 0);
  ASSERT_EQ(atoll({"storage", "drop", "heap"}).code, 0);
  ASSERT_EQ(atoll({"storage", "create", "heap", "--type", "sequential"}).code, 0);
  const auto schema = parse_export_schema(kSchema, "schema");
  ASSERT_TRUE(schema) << schema.error().message;
  const std::string csv =
      write_csv("heap.csv", random_csv(*schema->find("heap"), rounds(500, 5'000)));
  ASSERT_EQ(import("heap", csv).code, 0);
  kill_all();
  expected["heap"] = rows_of({csv});
  const Ran filled = export_to(path("filled"), chosen);
  ASSERT_EQ(filled.code, 0) << filled.error;
  expect_tables("filled", expected);
}

TEST_F(CheckpointExportTest, HasStoragesThatARunningClusterHasJustCreated) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_EQ(atoll({"checkpoint", "take"}).code, 0);
  create_storages();
  const Ran ran = export_to(path("empty"), {"--table", "tree", "--table", "heap"});
  ASSERT_EQ(ran.code, 0) << ran.error;
  expect_tables("empty", {{"tree", {}}, {"heap", {}}});
}

TEST_F(CheckpointExportTest, IsRefusedInTheMiddleOfASalvage) {
  ASSERT_NO_FATAL_FAILURE(start());
  fill(100);
  stop();
  PosixFileSystem files;
  ASSERT_TRUE(begin_salvage(files, config_.cluster.data_dir));
  const Ran ran = export_to(path("salvaged"));
  EXPECT_EQ(ran.code, 1) << ran.error;
  EXPECT_TRUE(ran.error.contains("a salvage is in progress")) << ran.error;
  EXPECT_FALSE(std::filesystem::exists(path("salvaged")));
}

}  // namespace
}  // namespace atolldb::test
