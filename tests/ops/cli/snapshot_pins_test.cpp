// `atoll snapshot pin|unpin|rm` on the files of a stopped cluster.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "ops/cli/snapshot_data.h"
#include "ops/launcher/directory_owner.h"
#include "ops/launcher/process_lock.h"
#include "shared/process/run_paths.h"
#include "tests/engine/snapshot/made_snapshot.h"

namespace atolldb::cli {
namespace {

namespace fs = std::filesystem;
using Command = Result<void> (*)(const ClusterChoice&, const SnapshotOptions&);

/// Snapshot 2 has pages that 3, the newest, refers to. Nothing refers to 1.
class SnapshotPinsTest : public testing::Test {
 protected:
  SnapshotPinsTest() {
    std::string pattern = (fs::temp_directory_path() / "atoll_pins_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    options_.data_dir = folder_;
    EXPECT_TRUE(claim_directories(files_, {"bank", folder_, {}, {}, {}}));
    Savepoint savepoint;
    savepoint.cluster_uuid = {7, 7};
    EXPECT_EQ(test::make_snapshot(files_, folder_, savepoint, 10), "");
    EXPECT_EQ(test::make_snapshot(files_, folder_, savepoint, 20), "");
    EXPECT_EQ(test::make_snapshot(files_, folder_, savepoint, 30,
                                  {{2, 0, folder_, test::kMadePages + 1}}),
              "");
  }
  ~SnapshotPinsTest() override { fs::remove_all(folder_); }

  /// Runs a command. Returns its output, or the message of its error.
  std::string run(Command command, ExitCode expected = ExitCode::success) {
    testing::internal::CaptureStdout();
    const Result<void> done = command({}, options_);
    std::string text = testing::internal::GetCapturedStdout();
    EXPECT_EQ(done ? ExitCode::success : done.error().code, expected)
        << (done ? text : done.error().message);
    return done ? text : done.error().message;
  }
  std::string pin(std::optional<uint32_t> id, const std::string& name,
                  ExitCode expected = ExitCode::success) {
    options_.id = id;
    options_.name = name;
    return run(pin_snapshot, expected);
  }
  std::string unpin(const std::string& pin, ExitCode expected = ExitCode::success) {
    options_.pin = pin;
    return run(unpin_snapshot, expected);
  }
  std::string rm(uint32_t id, ExitCode expected = ExitCode::success) {
    options_.id = id;
    return run(remove_snapshot, expected);
  }
  std::vector<PinnedSnapshot> pins() {
    const auto read = read_savepoint(files_, folder_);
    EXPECT_TRUE(read && *read);
    return (*read)->savepoint.pinned;
  }
  bool exists(const std::string& name) const { return fs::exists(folder_ + "/" + name); }

  PosixFileSystem files_;
  std::string folder_;
  SnapshotOptions options_;
};

bool tells(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(SnapshotPinsTest, PinsTheNewestAndLetsItGoByNameOrId) {
  EXPECT_TRUE(tells(pin({}, ""), "snapshot 3 is pinned as snapshot-3"));
  options_.json = true;
  const auto json = nlohmann::json::parse(pin(3, "before the move"));
  EXPECT_EQ(json,
            (nlohmann::json{
                {"schema_version", 1}, {"id", 3}, {"epoch", 30}, {"name", "before the move"}}));
  options_.json = false;
  EXPECT_EQ(pins(),
            (std::vector<PinnedSnapshot>{{3, 30, "snapshot-3"}, {3, 30, "before the move"}}));
  EXPECT_TRUE(tells(unpin("3", ExitCode::failed),
                    "has several pins (snapshot-3, before the move): choose one by its name"));
  EXPECT_TRUE(tells(unpin("before the move"), "pin before the move removed"));
  EXPECT_TRUE(tells(unpin("3"), "pin snapshot-3 removed"));
  EXPECT_TRUE(pins().empty());
  EXPECT_TRUE(tells(unpin("3", ExitCode::failed), "neither the name of a pin nor the id"));
}

TEST_F(SnapshotPinsTest, PinsNothingThatMayBeGone) {
  EXPECT_TRUE(tells(pin(1, "old", ExitCode::failed), "is neither the newest one of"));
  EXPECT_TRUE(tells(pin(9, "none", ExitCode::failed), "snapshot 9"));
  EXPECT_TRUE(pins().empty());
}

TEST_F(SnapshotPinsTest, TakesAsManyPinsAndNamesAsLongAsTheSavepointHolds) {
  for (uint32_t i = 1; i < kMaxPinnedSnapshots; ++i) pin(3, "pin " + std::to_string(i));
  EXPECT_TRUE(tells(pin(3, "pin 1", ExitCode::failed), "a pin has the name pin 1 already"));
  EXPECT_TRUE(tells(pin(3, std::string(kMaxPinNameBytes + 1, 'x'), ExitCode::failed),
                    "has 256 bytes, allowed are 1 to 255"));
  pin(3, std::string(kMaxPinNameBytes, 'x'));
  EXPECT_TRUE(tells(pin(3, "one more", ExitCode::resources), "there are 64 pins"));
  EXPECT_EQ(pins().size(), kMaxPinnedSnapshots);
  unpin("pin 7");
  pin(3, "one more");
  EXPECT_EQ(pins().size(), kMaxPinnedSnapshots);
}

TEST_F(SnapshotPinsTest, RefusesNamesThatATerminalOrJsonCannotShow) {
  for (const std::string name : {"a\nb", "a\tb", "\x1b[2J", "\xff\xfe"}) {
    EXPECT_TRUE(tells(pin(3, name, ExitCode::usage), "control characters or is not UTF-8"));
  }
  EXPECT_TRUE(tells(pin(3, "Zürich"), "Zürich"));
}

TEST_F(SnapshotPinsTest, RemovesWhatNothingNeedsAndSaysWhyItDoesNotRemoveMore) {
  EXPECT_TRUE(tells(rm(3, ExitCode::failed), "is the newest one"));
  EXPECT_TRUE(tells(rm(2, ExitCode::failed), "snapshot 3 refers to pages of it"));
  EXPECT_TRUE(tells(rm(9, ExitCode::failed), "does not exist"));
  pin(3, "kept");
  Savepoint savepoint = (*read_savepoint(files_, folder_))->savepoint;
  ASSERT_EQ(test::make_snapshot(files_, folder_, savepoint, 40), "");
  EXPECT_TRUE(tells(rm(3, ExitCode::failed), "is pinned as kept"));
  EXPECT_TRUE(tells(rm(2, ExitCode::failed), "snapshot 3 refers to pages of it"));
  EXPECT_TRUE(exists("node0/snapshot_1.atsnap"));
  EXPECT_TRUE(tells(rm(1), "snapshot 1 removed: 3 files"));
  for (const char* name : {"node0/snapshot_1.atsnap", "coordinator/snapshot_1.atsnap",
                           "coordinator/snapshot_1.meta"}) {
    EXPECT_FALSE(exists(name)) << name;
  }
  EXPECT_TRUE(tells(rm(1, ExitCode::failed), "does not exist"));
  unpin("kept");
  rm(3);
  EXPECT_TRUE(tells(rm(2), "snapshot 2 removed"));
  EXPECT_TRUE(tells(rm(4, ExitCode::failed), "is the newest one"));
}

TEST_F(SnapshotPinsTest, ChangesNothingInACopy) {
  const std::string copy = folder_ + ".copy";
  fs::copy(folder_, copy, fs::copy_options::recursive);
  options_.data_dir = copy;
  for (const auto& told : {pin(3, "mine", ExitCode::identity), unpin("1", ExitCode::identity),
                           rm(1, ExitCode::identity)}) {
    EXPECT_TRUE(tells(told, copy + ": is not at the place in its owner file")) << told;
  }
  EXPECT_TRUE(fs::exists(copy + "/node0/snapshot_1.atsnap"));
  fs::remove_all(copy);
}

TEST_F(SnapshotPinsTest, TouchesNoDataThatARunningClusterHas) {
  auto lock = ProcessLock::acquire(directory_lock_path(folder_), "bank", "cluster.data_dir");
  ASSERT_TRUE(lock) << lock.error().message;
  EXPECT_TRUE(tells(pin(3, "mine", ExitCode::already_running), "cluster \"bank\": runs already"));
  EXPECT_TRUE(pins().empty());
  lock->forget_processes();
}

}  // namespace
}  // namespace atolldb::cli
