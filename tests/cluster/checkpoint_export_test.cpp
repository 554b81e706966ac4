// `atoll export` of real clusters with durability.scheme = "silor": running, stopped, killed and
// restored.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/log/savepoint_snapshots.h"
#include "engine/recovery/salvage.h"
#include "ops/export/export_manifest.h"
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
  refuse({"--table", "none"}, "has no such table");
  refuse({"--memory", "much"}, "must be a size like 512MiB");
  const Ran small = export_to(path("refused"), {"--memory", "1KiB"});
  EXPECT_EQ(small.code, 6) << small.error;
  EXPECT_TRUE(small.error.contains("need more than 1.0 KiB of memory")) << small.error;
  EXPECT_FALSE(std::filesystem::exists(path("refused")));
  EXPECT_TRUE(pins().empty());
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

/// Changes a complete export as if it had been killed before the last part of the table "heap".
void forget_last_part_of_heap(const std::string& directory) {
  PosixFileSystem files;
  auto manifest = read_export_manifest(files, directory);
  ASSERT_TRUE(manifest && *manifest);
  (*manifest)->is_complete = false;
  for (ExportTable& table : (*manifest)->tables) {
    if (table.name != "heap") continue;
    table.parts.back() = {.range = table.parts.back().range};
    ASSERT_TRUE(
        files.remove(table_folder(directory, "heap") + "/" + part_name(table.parts.size() - 1)));
  }
  ASSERT_TRUE(write_export_manifest(files, directory, **manifest));
}

TEST_F(CheckpointExportTest, ContinuesAnUnfinishedExportAndKeepsItsCompleteFiles) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto csv = fill(rounds(1'000, 10'000));
  Tables tables;
  for (const auto& [table, file] : csv) tables[table] = rows_of({file});
  // The last parts of the heap are only in the log.
  ASSERT_EQ(atoll({"checkpoint", "take"}).code, 0);
  for (int again = 0; again < 3; ++again) {
    ASSERT_EQ(import("heap", csv.at("heap")).code, 0);
    tables["heap"].merge(rows_of({csv.at("heap")}));
  }
  const std::string directory = path("begun");
  ASSERT_EQ(export_to(directory, {"--parts", "3"}).code, 0);
  expect_tables("begun", tables);
  const auto expected = files_of(directory);
  const auto first = directory + "/heap/" + part_name(0);
  const auto resume = [&] { return atoll({"export", "--resume", directory}); };
  const auto expect_continued = [&](const Ran& ran) {
    ASSERT_EQ(ran.code, 0) << ran.error;
    EXPECT_EQ(files_of(directory), expected);
    EXPECT_TRUE(pins().empty());
  };
  const auto written = std::filesystem::last_write_time(first);
  ASSERT_NO_FATAL_FAILURE(forget_last_part_of_heap(directory));
  // Later commits are not part of the export.
  ASSERT_EQ(import("heap", csv.at("heap")).code, 0);
  ASSERT_NO_FATAL_FAILURE(expect_continued(resume()));
  EXPECT_EQ(std::filesystem::last_write_time(first), written) << "a complete part is kept";
  ASSERT_NO_FATAL_FAILURE(expect_continued(resume())) << "the export is complete";
  // A stopped cluster has the same state of that epoch, and so has the next start-up.
  ASSERT_NO_FATAL_FAILURE(forget_last_part_of_heap(directory));
  stop();
  ASSERT_NO_FATAL_FAILURE(expect_continued(resume()));
  ASSERT_NO_FATAL_FAILURE(forget_last_part_of_heap(directory));
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(expect_continued(resume()));
  EXPECT_EQ(std::filesystem::last_write_time(first), written);
}

/// Pins the checkpoint of an export as an export does that is killed later. REQUIRES: the cluster
/// is stopped, and keeps the checkpoint.
void leave_pin(const std::string& data_dir, const std::string& directory) {
  PosixFileSystem files;
  const auto manifest = read_export_manifest(files, directory);
  ASSERT_TRUE(manifest && *manifest);
  auto read = read_savepoint(files, data_dir);
  ASSERT_TRUE(read && *read);
  const auto pinned = pin_snapshot(files, data_dir, (*read)->savepoint, (*manifest)->snapshot,
                                   std::string(kBackupPinPrefix) + (*manifest)->pin);
  ASSERT_TRUE(pinned) << pinned.error().message;
}

TEST_F(CheckpointExportTest, APinKeepsItsCheckpointAndLogOverCheckpointsAndRestarts) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto csv = fill(rounds(500, 5'000));
  ASSERT_EQ(atoll({"checkpoint", "take"}).code, 0);
  ASSERT_EQ(import("heap", csv.at("heap")).code, 0);
  const std::string directory = path("begun");
  ASSERT_EQ(export_to(directory, {"--parts", "3"}).code, 0);
  const auto expected = files_of(directory);
  const auto resume = [&](const std::string& export_directory) {
    return atoll({"export", "--resume", export_directory});
  };
  const auto expect_continued = [&] {
    const Ran ran = resume(directory);
    ASSERT_EQ(ran.code, 0) << ran.error;
    EXPECT_EQ(files_of(directory), expected);
    EXPECT_TRUE(pins().empty());
  };
  const auto leave_unfinished = [&] {
    ASSERT_NO_FATAL_FAILURE(forget_last_part_of_heap(directory));
    ASSERT_NO_FATAL_FAILURE(leave_pin(config_.cluster.data_dir, directory));
  };
  stop();
  ASSERT_NO_FATAL_FAILURE(leave_unfinished());
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_EQ(import("heap", csv.at("heap")).code, 0);
  ASSERT_EQ(atoll({"checkpoint", "take"}).code, 0);
  // Neither a complete export nor one that is refused removes the pin of another.
  const std::vector<std::string> left = pins();
  ASSERT_EQ(left.size(), 1u);
  const std::string dead = path("dead");
  std::filesystem::copy(directory, dead, std::filesystem::copy_options::recursive);
  PosixFileSystem files;
  auto manifest = read_export_manifest(files, dead);
  ASSERT_TRUE(manifest && *manifest);
  (*manifest)->pin += "-dead";
  ASSERT_TRUE(write_export_manifest(files, dead, **manifest));
  const Ran refused = resume(dead);
  EXPECT_EQ(refused.code, 1) << refused.error;
  EXPECT_EQ(pins(), left);
  (*manifest)->is_complete = true;
  ASSERT_TRUE(write_export_manifest(files, dead, **manifest));
  const Ran complete = resume(dead);
  EXPECT_EQ(complete.code, 0) << complete.error;
  EXPECT_EQ(pins(), left);
  // A storage of the export is dropped, and the cluster restarts and stops.
  ASSERT_EQ(atoll({"storage", "drop", "tree"}).code, 0);
  ASSERT_EQ(atoll({"checkpoint", "take"}).code, 0);
  stop();
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(expect_continued());
}

TEST_F(CheckpointExportTest, OfAStoppedClusterContinuesAfterTheNextStartUp) {
  ASSERT_NO_FATAL_FAILURE(start());
  fill(rounds(500, 5'000));
  ASSERT_EQ(atoll({"checkpoint", "take"}).code, 0);
  // The log after the checkpoint has no records.
  stop();
  const std::string directory = path("begun");
  ASSERT_EQ(export_to(directory, {"--parts", "3"}).code, 0);
  const auto expected = files_of(directory);
  for (const bool is_pinned : {true, false}) {
    SCOPED_TRACE(is_pinned);
    ASSERT_NO_FATAL_FAILURE(forget_last_part_of_heap(directory));
    if (is_pinned) {
      ASSERT_NO_FATAL_FAILURE(leave_pin(config_.cluster.data_dir, directory));
    }
    ASSERT_NO_FATAL_FAILURE(start());
    const Ran ran = atoll({"export", "--resume", directory});
    ASSERT_EQ(ran.code, 0) << ran.error;
    EXPECT_EQ(files_of(directory), expected);
    EXPECT_TRUE(pins().empty());
    stop();
  }
}

TEST_F(CheckpointExportTest, OnAFullDiskRemovesItsPinAndCanContinueLater) {
  constexpr uint64_t kReserve = uint64_t{1} << 40;  // the largest value of the key
  if (std::filesystem::space(folder_.path()).available >= kReserve) {
    GTEST_SKIP() << "the disk has 1 TiB free, and gleaner.disk_reserve cannot ask for more";
  }
  const auto start_with_reserve = [&](uint64_t bytes) {
    config_.gleaner.disk_reserve = bytes;
    std::ofstream(file_) << to_toml(config_);
    start();
  };
  ASSERT_NO_FATAL_FAILURE(start());
  const auto csv = fill(100);
  ASSERT_EQ(atoll({"checkpoint", "take"}).code, 0);
  ASSERT_EQ(import("heap", csv.at("heap")).code, 0);
  const std::string directory = path("begun");
  ASSERT_EQ(export_to(directory).code, 0);
  const auto expected = files_of(directory);
  ASSERT_NO_FATAL_FAILURE(forget_last_part_of_heap(directory));
  stop();
  ASSERT_NO_FATAL_FAILURE(start_with_reserve(kReserve));
  const Ran full = atoll({"export", "--resume", directory});
  EXPECT_EQ(full.code, static_cast<int>(ExitCode::disk_full)) << full.error;
  EXPECT_TRUE(full.error.contains("is kept, until the next checkpoint")) << full.error;
  EXPECT_FALSE(full.error.contains("snapshot unpin")) << full.error;
  EXPECT_TRUE(pins().empty());
  stop();
  ASSERT_NO_FATAL_FAILURE(start_with_reserve(1));
  const Ran ran = atoll({"export", "--resume", directory});
  ASSERT_EQ(ran.code, 0) << ran.error;
  EXPECT_EQ(files_of(directory), expected);
}

TEST_F(CheckpointExportTest, NamesThePinThatKeepsAnUnfinishedExport) {
  ASSERT_NO_FATAL_FAILURE(start());
  fill(100);
  const std::string directory = path("begun");
  ASSERT_EQ(export_to(directory).code, 0);
  ASSERT_NO_FATAL_FAILURE(forget_last_part_of_heap(directory));
  const auto expect_pinned = [&] {
    const Ran small = atoll({"export", "--resume", directory, "--memory", "1KiB"});
    EXPECT_EQ(small.code, 6) << small.error;
    ASSERT_EQ(pins().size(), 1u);
    EXPECT_TRUE(small.error.contains("run `atoll snapshot unpin " + pins().front() + "`"))
        << small.error;
  };
  ASSERT_NO_FATAL_FAILURE(expect_pinned());
  stop();
  ASSERT_NO_FATAL_FAILURE(expect_pinned());
  ASSERT_EQ(atoll({"snapshot", "unpin", pins().front()}).code, 0);
  ASSERT_NO_FATAL_FAILURE(expect_pinned()) << "a stopped cluster is pinned, too";
  ASSERT_EQ(atoll({"export", "--resume", directory}).code, 0);
  EXPECT_TRUE(pins().empty());
}

TEST_F(CheckpointExportTest, RefusesToContinueWithOtherDataOrOptions) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto csv = fill(100);
  const std::string directory = path("begun");
  ASSERT_EQ(export_to(directory).code, 0);
  ASSERT_NO_FATAL_FAILURE(forget_last_part_of_heap(directory));
  const auto refuse = [&](std::vector<std::string> more, int code, const std::string& why) {
    std::vector<std::string> words = {"export", "--resume", directory};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = atoll(std::move(words));
    EXPECT_EQ(ran.code, code) << ran.error;
    EXPECT_NE(ran.error.find(why), std::string::npos) << ran.error;
    EXPECT_TRUE(pins().empty());
  };
  const Ran none = atoll({"export", "--resume", path("none")});
  EXPECT_EQ(none.code, 1) << none.error;
  EXPECT_TRUE(none.error.contains("holds no export")) << none.error;
  refuse({"--snapshot", "1"}, 2, "--snapshot: the cluster has durability.scheme");
  refuse({"--table", "heap"}, 2, "keeps its tables");
  std::string text = kSchema;
  text.replace(text.find("payload_bytes = 60"), 18, "payload_bytes = 64");
  std::ofstream(path("other.toml")) << text;
  refuse({"--schema", path("other.toml")}, 1, "another schema");
  PosixFileSystem files;
  const auto manifest = read_export_manifest(files, directory);
  ASSERT_TRUE(manifest && *manifest);
  ExportManifest other = **manifest;
  ++other.input_crc32c;
  ASSERT_TRUE(write_export_manifest(files, directory, other));
  refuse({}, 11, "logs differ from those with which the export has begun");
  other = **manifest;
  ++other.cluster_uuid[0];
  ASSERT_TRUE(write_export_manifest(files, directory, other));
  refuse({}, 11, "is not the data that this export has begun with");
  ASSERT_TRUE(write_export_manifest(files, directory, **manifest));
  ASSERT_EQ(import("heap", csv.at("heap")).code, 0);
  ASSERT_EQ(atoll({"checkpoint", "take"}).code, 0);
  refuse({}, 1, "are not kept any more, so the export cannot continue");
}

TEST_F(CheckpointExportTest, KilledAtRandomInstantsContinuesWithItsEpoch) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto csv = fill(rounds(5'000, kListRecords));
  Tables expected;
  for (const auto& [table, file] : csv) expected[table] = rows_of({file});
  uint64_t killed = 0;
  uint64_t continued = 0;
  ASSERT_EQ(atoll({"checkpoint", "take"}).code, 0);
  for (uint64_t round = 0; round < rounds(4, 60); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    // These records are only in the log.
    ASSERT_EQ(import("heap", csv.at("heap")).code, 0);
    expected["heap"].merge(rows_of({csv.at("heap")}));
    const std::string name = "killed" + std::to_string(round);
    const std::string directory = path(name);
    const std::vector<std::string> begin =
        of_cluster({"export", directory, "--schema", schema_, "--parts", "8"});
    const std::vector<std::string> resume = of_cluster({"export", "--resume", directory});
    const auto words = [&] {
      const bool has_begun = std::filesystem::exists(export_manifest_path(directory));
      // Without a manifest, the directory has at most a lock and a schema.
      if (!has_begun) std::filesystem::remove_all(directory);
      return has_begun ? resume : begin;
    };
    for (uint32_t run = 0; run < 3; ++run) {
      const pid_t pid = runner_.start(std::string(ATOLL_BIN_DIR) + "/atoll", words(),
                                      path("killed.out"), path("killed.err"));
      std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 150));  // random instant
      kill(pid, SIGKILL);
      int status = 0;
      waitpid(pid, &status, 0);
      killed += WIFSIGNALED(status) ? 1 : 0;
    }
    PosixFileSystem files;
    const auto manifest = read_export_manifest(files, directory);
    ASSERT_TRUE(manifest) << manifest.error().message;
    const bool has_epoch = *manifest && (*manifest)->is_planned();
    continued += has_epoch && !(*manifest)->is_complete ? 1 : 0;
    // If the epoch is chosen, later commits and checkpoints change nothing.
    ASSERT_EQ(import("heap", csv.at("heap")).code, 0);
    ASSERT_EQ(atoll({"checkpoint", "take"}).code, 0);
    if (round % 2 == 1) {
      kill_all();
      if (round % 4 == 3) {
        ASSERT_NO_FATAL_FAILURE(start());
      }
    }
    Tables later = expected;
    later["heap"].merge(rows_of({csv.at("heap")}));
    const Ran last = runner_.atoll(words());
    ASSERT_EQ(last.code, 0) << last.error;
    ASSERT_NO_FATAL_FAILURE(expect_tables(name, has_epoch ? expected : later));
    if (launcher_ == nullptr) {
      ASSERT_NO_FATAL_FAILURE(start());
    }
    expected = std::move(later);
    std::filesystem::remove_all(directory);
  }
  std::printf("%llu exports killed, %llu continued\n", static_cast<unsigned long long>(killed),
              static_cast<unsigned long long>(continued));
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
