#include "ops/launcher/directory_owner.h"

#include <gtest/gtest.h>

#include "tests/engine/log/hooked_file_system.h"
#include "tests/engine/log/written_log.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

Result<void> claim(FileSystem& files, const std::string& name,
                   const std::vector<std::string>& log_directories) {
  return claim_directories(files, name, "/" + name, log_directories);
}

std::unique_ptr<PowerCutFileSystem> disk_with_directories() {
  auto disk = std::make_unique<PowerCutFileSystem>();
  for (const char* directory : {"/a", "/b", "/fast", "/big"}) {
    EXPECT_TRUE(disk->make_directory(directory));
  }
  return disk;
}

void expect_refused(const Result<void>& claimed, const std::string& directory,
                    const std::string& owner) {
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ExitCode::failed);
  const std::string& message = claimed.error().message;
  EXPECT_TRUE(message.starts_with(directory + ": ")) << message;
  EXPECT_NE(message.find("cluster \"" + owner + "\""), std::string::npos) << message;
  EXPECT_NE(message.find("give this cluster its own"), std::string::npos) << message;
}

TEST(DirectoryOwner, IsTheFirstClusterThatUsedIt) {
  auto disk = disk_with_directories();
  ASSERT_TRUE(claim(*disk, "a", {"/fast", "/big"}));
  EXPECT_TRUE(claim(*disk, "a", {"/fast", "/big"})) << "again and again";
  EXPECT_TRUE(claim(*disk, "a", {})) << "it need not use them";
  expect_refused(claim(*disk, "b", {"/fast"}), "/fast", "a");
  EXPECT_FALSE(*disk->exists("/b/owner")) << "a refused start changes nothing";
  ASSERT_TRUE(claim(*disk, "b", {}));
  expect_refused(claim(*disk, "b", {"/big"}), "/big", "a");
}

TEST(DirectoryOwner, TellsDataDirectoriesFromLogDirectories) {
  auto disk = disk_with_directories();
  ASSERT_TRUE(claim(*disk, "a", {"/fast"}));
  expect_refused(claim(*disk, "b", {"/a"}), "/a", "a");
  expect_refused(claim_directories(*disk, "b", "/fast", {}), "/fast", "a");
  EXPECT_TRUE(claim_directories(*disk, "renamed", "/a", {"/fast"})) << "the id counts, not names";
}

TEST(DirectoryOwner, IsNotGuessedWhenItsFileIsDamaged) {
  auto disk = disk_with_directories();
  ASSERT_TRUE(claim(*disk, "a", {"/fast"}));
  ASSERT_TRUE(disk->corrupt("/fast/owner", 0, 0x55));
  const auto claimed = claim(*disk, "a", {"/fast"});
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ExitCode::corruption);
  EXPECT_TRUE(claimed.error().message.starts_with("/fast/owner: ")) << claimed.error().message;
}

TEST(DirectoryOwner, IsNotWhoeverFindsTheLogsOfAnotherWithoutAnOwner) {
  auto disk = disk_with_directories();
  const LogWriter log = make_writer(*disk, {1, 0, "/fast"}, 7, 1);
  const auto claimed = claim(*disk, "a", {"/big", "/fast"});
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ExitCode::failed);
  EXPECT_NE(claimed.error().message.find("/fast/node1/log_7_0_000000.atlog"), std::string::npos)
      << claimed.error().message;
  EXPECT_FALSE(*disk->exists("/big/owner"));
  // A savepoint that names the log's cluster tells that it is its own.
  Savepoint savepoint;
  savepoint.cluster_uuid = kUuid;
  ASSERT_TRUE(disk->make_directory("/a/coordinator"));
  ASSERT_TRUE(write_savepoint(*disk, "/a", savepoint));
  const auto own = claim(*disk, "a", {"/big", "/fast"});
  EXPECT_TRUE(own) << own.error().message;
}

TEST(DirectoryOwner, SurvivesAPowerCutAtAnyTime) {
  const uint64_t first_seed = seed();
  for (uint64_t works = 0;; ++works) {
    auto disk = disk_with_directories();
    HookedFileSystem files(*disk, {}, works);
    const bool is_claimed = claim(files, "a", {"/fast", "/big"}).has_value();
    for (uint64_t cut = 0; cut < 8; ++cut) {
      SCOPED_TRACE("seed " + std::to_string(first_seed + cut) + ", " + std::to_string(works) +
                   " changes before the cut");
      auto after = disk->cut(first_seed + cut);
      if (is_claimed) expect_refused(claim(*after, "b", {"/big"}), "/big", "a");
      const auto again = claim(*after, "a", {"/fast", "/big"});
      EXPECT_TRUE(again) << again.error().message;
      expect_refused(claim(*after, "b", {"/fast"}), "/fast", "a");
    }
    if (is_claimed) break;
  }
}

}  // namespace
}  // namespace atolldb::test
