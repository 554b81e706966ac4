// The pins that exports of a stopped cluster with checkpoints make, continue with and remove.
#include "ops/cli/backup_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "ops/launcher/directory_owner.h"
#include "shared/base/check.h"
#include "shared/file/posix_file_system.h"
#include "tests/engine/checkpoint/made_checkpoint.h"

namespace atolldb::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNotKept = "are not kept any more, so the export cannot continue";

/// A stopped cluster without log, whose newest checkpoint is 2. Pins keep checkpoint 1.
class BackupSourceTest : public testing::Test {
 protected:
  BackupSourceTest() {
    std::printf("seed: none, nothing here is random\n");
    std::string pattern = (fs::temp_directory_path() / "atoll_source_XXXXXX").string();
    options_.data_dir = fs::canonical(mkdtemp(pattern.data())).string();
    EXPECT_TRUE(claim_directories(files_, {"bank", options_.data_dir, {}, {}, {}}));
    savepoint_.cluster_uuid = {7, 7};
    savepoint_.scheme = DurabilityScheme::silor;
    EXPECT_EQ(test::make_checkpoint(files_, options_.data_dir, savepoint_, 5, 7), "");
    leave_pin("one");
    leave_pin("other");
    EXPECT_EQ(test::make_checkpoint(files_, options_.data_dir, savepoint_, 9, 9), "");
  }
  ~BackupSourceTest() override { fs::remove_all(options_.data_dir); }

  /// Pins checkpoint 1 as an export with this id does that is killed afterwards.
  void leave_pin(const std::string& id) {
    EXPECT_TRUE(pin_snapshot(files_, options_.data_dir, savepoint_, 1, BackupSource::pin_name(id)));
  }
  BackupSource open() {
    auto source = BackupSource::open(files_, {}, options_);
    EXPECT_TRUE(source) << source.error().message;
    CHECK(source.has_value());
    return *std::move(source);
  }
  /// Returns the ids of the exports and backups with pins.
  std::vector<std::string> pins() {
    const auto read = read_savepoint(files_, options_.data_dir);
    EXPECT_TRUE(read && *read);
    std::vector<std::string> ids;
    for (const PinnedSnapshot& pin : (*read)->savepoint.pinned) {
      ids.push_back(pin.name.substr(kBackupPinPrefix.size()));
    }
    std::ranges::sort(ids);
    return ids;
  }
  void expect_refused(BackupSource& source, const std::string& id, uint32_t checkpoint) {
    const auto refused = source.continue_with(id, checkpoint, 9);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ExitCode::failed);
    EXPECT_TRUE(refused.error().message.contains(kNotKept)) << refused.error().message;
  }

  PosixFileSystem files_;
  DataOptions options_;
  Savepoint savepoint_;
};

TEST_F(BackupSourceTest, AnExportThatContinuesKeepsItsOwnPin) {
  BackupSource source = open();
  ASSERT_TRUE(source.continue_with("one", 1, 9));
  EXPECT_EQ(source.newest(), 1u);
  const auto removed = source.remove_left_pins();
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(*removed, std::vector{BackupSource::pin_name("other")});
  EXPECT_EQ(pins(), std::vector<std::string>{"one"});
  ASSERT_TRUE(source.release());
  EXPECT_TRUE(pins().empty());
}

TEST_F(BackupSourceTest, AnExportThatIsRefusedKeepsThePinsOfOthers) {
  {
    BackupSource source = open();
    expect_refused(source, "dead", 1);
  }
  EXPECT_EQ(pins(), (std::vector<std::string>{"one", "other"}));
}

TEST_F(BackupSourceTest, APinOfAnotherCheckpointIsRefusedAndRemoved) {
  {
    BackupSource source = open();
    expect_refused(source, "one", 2);
  }
  EXPECT_EQ(pins(), std::vector<std::string>{"other"});
}

TEST_F(BackupSourceTest, AnExportOfAStoppedClusterPinsItsCheckpointForALaterRun) {
  {
    BackupSource source = open();
    ASSERT_TRUE(source.choose_checkpoint("new"));
    EXPECT_EQ(source.newest(), 2u);
    EXPECT_FALSE(source.durable_epoch());
    source.keep_pins();
  }
  EXPECT_EQ(pins(), (std::vector<std::string>{"new", "one", "other"}));
  {
    BackupSource source = open();
    ASSERT_TRUE(source.continue_with("new", 2, 9));
  }
  EXPECT_EQ(pins(), (std::vector<std::string>{"one", "other"})) << "no later run needs it";
  BackupSource source = open();
  ASSERT_TRUE(source.continue_with("new", 2, 9)) << "checkpoint 2 is the newest one";
  EXPECT_EQ(pins(), (std::vector<std::string>{"new", "one", "other"}));
}

TEST_F(BackupSourceTest, ABackupOfAStoppedClusterPinsNothing) {
  BackupSource source = open();
  ASSERT_TRUE(source.choose_snapshots("new"));
  EXPECT_EQ(source.newest(), 2u);
  EXPECT_EQ(pins(), (std::vector<std::string>{"one", "other"}));
}

TEST_F(BackupSourceTest, RemovesTheLeftPinOfOneExportOnly) {
  BackupSource source = open();
  ASSERT_TRUE(source.remove_left_pin("none"));
  EXPECT_EQ(pins(), (std::vector<std::string>{"one", "other"}));
  ASSERT_TRUE(source.remove_left_pin("one"));
  EXPECT_EQ(pins(), std::vector<std::string>{"other"});
}

}  // namespace
}  // namespace atolldb::cli
