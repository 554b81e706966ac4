// Full disks of data_dir, at which the state of the archive cannot be stored, and crashes after
// that: no log is lost (R72).
#include "tests/coordinator/archive/unstored_state.h"

#include <gtest/gtest.h>

#include "engine/recovery/salvage.h"

namespace atolldb::test {
namespace {

TEST(UnstoredArchiveState, KeepsTheLogOfAnIncarnationThatTheNextStartForgets) {
  EXPECT_EQ(unstored_state_keeps_the_log({.is_known = false, .is_covered = true}), "");
  EXPECT_EQ(unstored_state_keeps_the_log({.is_known = true, .is_covered = true}), "");
}

TEST(UnstoredArchiveState, KeepsTheLogOfAnIncarnationThatTheNextSnapshotForgets) {
  EXPECT_EQ(unstored_state_keeps_the_log({.is_known = false, .is_covered = false}), "");
  EXPECT_EQ(unstored_state_keeps_the_log({.is_known = true, .is_covered = false}), "");
}

TEST(UnstoredArchiveState, IsStoredLaterAndThenTheLogIsForgotten) {
  DataDirectory data;
  ASSERT_TRUE(data.files.make_directory(kArchive));
  ASSERT_EQ(data.begin({kFirst}), "");
  FullForState full(data.files);
  ArchiveRun run(full, data.start.savepoint, archive_config());
  data.write_all(1, 5);
  EXPECT_FALSE(run.progress().store_pending());
  EXPECT_EQ(run.work(), archive_state_path("/data") + ".new: no space left");
  full.is_full = false;
  EXPECT_TRUE(run.progress().store_pending());
  const auto stored = read_archive_state(data.files, "/data");
  ASSERT_TRUE(stored && *stored);
  EXPECT_EQ(**stored, run.progress().state());
  full.is_full = true;
  EXPECT_TRUE(run.progress().store_pending()) << "nothing is left to store";
}

/// If the state of the archive cannot be stored, the salvage must not end. If it ended, the archive
/// would lead from commits that the salvage gave up to later ones (R56).
TEST(UnstoredArchiveState, KeepsASalvageFromEnding) {
  DataDirectory data;
  Config config = archive_config();
  config.nodes.assign(1, NodeConfig{});
  ASSERT_TRUE(data.files.make_directory(kArchive));
  ASSERT_EQ(data.begin({kFirst}), "");
  data.write_all(1, 3);
  ASSERT_TRUE(begin_salvage(data.files, "/data"));
  FullForState full(data.files);
  FileSystem& files = full;  // as FileSystem: ForwardingFileSystem(full) would copy `full`
  auto opened = DurableState::open(config, 0, std::make_unique<ForwardingFileSystem>(files),
                                   make_silent_logger("test"));
  ASSERT_TRUE(opened) << opened.error().message;
  const auto refused = (*opened)->end_salvage();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::disk_full);
  EXPECT_TRUE((*opened)->salvages());
  full.is_full = false;
  ASSERT_TRUE((*opened)->end_salvage());
  const auto stored = read_archive_state(data.files, "/data");
  ASSERT_TRUE(stored && *stored);
  EXPECT_EQ((*stored)->history, 1u);
}

}  // namespace
}  // namespace atolldb::test
