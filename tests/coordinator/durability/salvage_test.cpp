// Salvages that are interrupted or refused, as far as DurableState takes part.
#include "engine/recovery/salvage.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "coordinator/durability/durable_state.h"
#include "shared/file/forwarding_file_system.h"
#include "tests/engine/log/written_log.h"
#include "tests/engine/snapshot/made_snapshot.h"

namespace atolldb::test {
namespace {

class SalvageTest : public testing::Test {
 protected:
  SalvageTest() {
    config_.cluster.data_dir = "/data";
    config_.nodes.assign(2, NodeConfig{});
    config_.nodes[1].directories = {"/fast"};
  }
  /// Writes two logs of epochs 1 to 3. Damages the marker of epoch 2 in the first one.
  void damage_log() {
    ASSERT_EQ(data_.begin({kFirst, kSecond}, 64), "");
    data_.write_all(1, 3);
    data_.files.bytes("/data/node0/log_1_0_000000.atlog")[6 * kLogBlockBytes + 20] ^= std::byte{1};
  }
  Result<std::unique_ptr<DurableState>> open() {
    return DurableState::open(config_, 0, std::make_unique<ForwardingFileSystem>(data_.files),
                              make_silent_logger("test"));
  }

  Config config_;
  DataDirectory data_;
};

TEST_F(SalvageTest, ReportsWhatAnInterruptedAttemptHasOmitted) {
  ASSERT_NO_FATAL_FAILURE(damage_log());
  ASSERT_TRUE(begin_salvage(data_.files, "/data"));
  const Json range = {{"storage", 1}, {"range", "keys from 0x01"}};
  {
    auto first = open();
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ((*first)->left_out().size(), 1u);
    // Reports before the new snapshot is stored. Then the process ends, as if it was killed.
    ASSERT_TRUE((*first)->report_salvage(
        {{"left_out", (*first)->left_out()}, {"ranges", Json::array({range})}}));
  }
  auto second = open();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_TRUE((*second)->salvages());
  EXPECT_TRUE((*second)->left_out().empty()) << "the cut is stored already";
  ASSERT_TRUE((*second)->report_salvage({{"left_out", (*second)->left_out()}, {"epoch", 7}}));
  const auto path = (*second)->end_salvage();
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(*path, salvage_report_path("/data", 0));
  const auto text = read_salvage_report(data_.files, "/data", 0);
  ASSERT_TRUE(text);
  const Json report = Json::parse(*text, nullptr, false);
  ASSERT_TRUE(report.is_object()) << *text;
  EXPECT_EQ(report["left_out"].size(), 1u) << *text;
  EXPECT_EQ(report["ranges"], Json::array({range})) << *text;
  EXPECT_EQ(report["epoch"], 7);
}

TEST_F(SalvageTest, WritesItsReportBeforeItStoresTheCut) {
  for (uint64_t changes = 0;; ++changes) {
    data_ = {};
    ASSERT_NO_FATAL_FAILURE(damage_log());
    ASSERT_TRUE(begin_salvage(data_.files, "/data"));
    data_.files.changes_left = changes;
    const bool is_open = open().has_value();
    data_.files.changes_left = UINT64_MAX;
    ASSERT_TRUE(open()) << changes;
    const auto text = read_salvage_report(data_.files, "/data", 0);
    ASSERT_TRUE(text);
    const Json report = Json::parse(*text, nullptr, false);
    ASSERT_TRUE(report.is_object()) << changes << ": " << *text;
    EXPECT_EQ(report["left_out"].size(), 1u) << changes << ": " << *text;
    if (is_open) break;
  }
}

TEST_F(SalvageTest, BeginsANewHistoryOfTheArchiveThoughNothingIsArchivedNow) {
  ASSERT_NO_FATAL_FAILURE(damage_log());
  ArchiveState before;
  before.identity.id = new_archive_id();
  before.target = "directory /archive";
  ASSERT_TRUE(write_archive_state(data_.files, "/data", before));
  ASSERT_TRUE(begin_salvage(data_.files, "/data"));
  ASSERT_TRUE(open());
  const auto after = read_archive_state(data_.files, "/data");
  ASSERT_TRUE(after && *after);
  EXPECT_EQ((*after)->history, 1u);
}

TEST_F(SalvageTest, ThatIsRefusedLeavesNoMark) {
  ASSERT_EQ(data_.begin({kFirst, kSecond}, 64), "");
  data_.write_all(1, 3);
  ASSERT_EQ(make_snapshot(data_.files, "/data", data_.start.savepoint, 3), "");
  const std::string metadata = snapshot_metadata_path("/data", 1);
  data_.files.bytes(metadata)[40] ^= std::byte{1};
  ASSERT_TRUE(begin_salvage(data_.files, "/data"));
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::corruption) << refused.error().message;
  data_.files.bytes(metadata)[40] ^= std::byte{1};  // as if the file was restored from a backup
  const auto started = open();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_FALSE((*started)->salvages());
}

TEST_F(SalvageTest, ThatHasStoredTheCutGoesOnAfterARefusal) {
  ASSERT_NO_FATAL_FAILURE(damage_log());
  ASSERT_TRUE(begin_salvage(data_.files, "/data"));
  ASSERT_TRUE(open());
  MemoryFileSystem::Bytes& savepoint = data_.files.bytes(savepoint_path("/data"));
  const MemoryFileSystem::Bytes intact = savepoint;
  std::ranges::fill(savepoint, std::byte{1});
  ASSERT_FALSE(open());
  savepoint = intact;
  const auto again = open();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE((*again)->salvages());
}

TEST_F(SalvageTest, DoesNotAddToTheReportOfAnEarlierSalvageWhoseFolderIsGone) {
  ASSERT_NO_FATAL_FAILURE(damage_log());
  ASSERT_TRUE(write_salvage_report(data_.files, "/data", 0, "{}"));
  ASSERT_TRUE(begin_salvage(data_.files, "/data"));
  const auto number = find_salvage(data_.files, "/data");
  ASSERT_TRUE(number);
  EXPECT_EQ(*number, 1u);
}

}  // namespace
}  // namespace atolldb::test
