// Owner files of directories: the recorded location, and the cluster that owns the directory (R47).
#include "ops/launcher/directory_owner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "engine/log/savepoint.h"
#include "shared/file/directory_table.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/engine/log/written_log.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// Locates the directories of a test. A location follows from the name, unless the test sets
/// another.
class Places {
 public:
  LocateDirectory locate() {
    return [this](const std::string& directory) -> Result<DirectoryLocation> {
      const auto found = moved_.find(directory);
      if (found != moved_.end()) return found->second;
      return DirectoryLocation{directory, "fsid 1", std::hash<std::string>()(directory), "m", "h"};
    };
  }
  void move(const std::string& directory, DirectoryLocation to) {
    moved_[directory] = std::move(to);
  }

 private:
  std::map<std::string, DirectoryLocation> moved_;
};

DataDirectories directories_of(FileSystem& files, const std::string& cluster,
                               const std::string& data_dir,
                               const std::vector<std::string>& log_directories) {
  DataDirectories directories{cluster, data_dir, log_directories, {}, {}};
  auto named = named_directories(files, data_dir);
  EXPECT_TRUE(named);
  if (named) directories.named = *std::move(named);
  for (const std::string& directory : directories.named.directories) {
    if (directory != data_dir && std::ranges::count(log_directories, directory) == 0) {
      directories.left.push_back(directory);
    }
  }
  return directories;
}

Result<void> claim_as(FileSystem& files, const std::string& cluster, const std::string& data_dir,
                      const std::vector<std::string>& log_directories, Places places = {}) {
  return claim_directories(files, directories_of(files, cluster, data_dir, log_directories),
                           places.locate());
}

Result<void> claim(FileSystem& files, const std::string& name,
                   const std::vector<std::string>& log_directories, Places places = {}) {
  return claim_as(files, name, "/" + name, log_directories, std::move(places));
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
  expect_refused(claim_as(*disk, "b", "/fast", {}), "/fast", "a");
  EXPECT_TRUE(claim_as(*disk, "renamed", "/a", {"/fast"})) << "the id counts, not names";
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

TEST(DirectoryOwner, IsNotTheDatabaseThatFindsTheLogsOfAnotherWithoutAnOwner) {
  auto disk = disk_with_directories();
  ASSERT_TRUE(claim(*disk, "a", {}));
  const LogWriter log = make_writer(*disk, {1, 0, "/fast"}, 7, 1);
  const auto claimed = claim(*disk, "a", {"/big", "/fast"});
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ExitCode::failed);
  EXPECT_NE(claimed.error().message.find("/fast/node1/log_7_0_000000.atlog"), std::string::npos)
      << claimed.error().message;
  EXPECT_FALSE(*disk->exists("/big/owner"));
  // A savepoint that names the log's cluster proves that the log is this cluster's own.
  Savepoint savepoint;
  savepoint.cluster_uuid = kUuid;
  ASSERT_TRUE(disk->make_directory("/a/coordinator"));
  ASSERT_TRUE(write_savepoint(*disk, "/a", savepoint));
  const auto own = claim(*disk, "a", {"/big", "/fast"});
  EXPECT_TRUE(own) << own.error().message;
}

void expect_identity(const Result<void>& claimed, const std::string& directory,
                     const std::string& why) {
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, ExitCode::identity) << claimed.error().message;
  const std::string& message = claimed.error().message;
  EXPECT_TRUE(message.starts_with(directory)) << message;
  EXPECT_NE(message.find(why), std::string::npos) << message;
}

void expect_both_ways_out(const Result<void>& claimed) {
  ASSERT_FALSE(claimed);
  EXPECT_NE(claimed.error().message.find("adopt --moved"), std::string::npos);
  EXPECT_NE(claimed.error().message.find("adopt --copy"), std::string::npos);
}

TEST(DirectoryOwner, RefusesADirectoryThatIsNotWhereItWasWhicheverPartOfThatDiffers) {
  auto disk = disk_with_directories();
  ASSERT_TRUE(claim(*disk, "a", {"/fast"}));
  for (const std::string directory : {"/a", "/fast"}) {
    const DirectoryLocation there = *Places().locate()(directory);
    DirectoryLocation other = there;
    const auto refused = [&](const std::string& why) {
      Places places;
      places.move(directory, std::exchange(other, there));
      const auto claimed = claim(*disk, "a", {"/fast"}, places);
      expect_identity(claimed, directory + ": ", why);
      expect_both_ways_out(claimed);
    };
    other.path = "/elsewhere";
    refused("its path was " + directory + " and is /elsewhere");
    other.inode = 5;
    refused("its inode was");
    other.file_system = "fsid 2";
    refused("its file system was fsid 1 and is fsid 2");
    other.machine = "n";
    refused("its machine was");
    other.hardware = "i";
    refused("its hardware was");
    // A value that is unknown on either side is not compared.
    for (const DirectoryLocation& known : {DirectoryLocation{there.path, "", 0, "", ""},
                                           DirectoryLocation{there.path, "uuid 7", 0, "", ""}}) {
      Places places;
      places.move(directory, known);
      const auto claimed = claim(*disk, "a", {"/fast"}, places);
      EXPECT_TRUE(claimed) << claimed.error().message;
    }
  }
}

TEST(DirectoryOwner, ReadsNothingOfADataDirectoryThatIsNotWhereItWas) {
  auto disk = disk_with_directories();
  ASSERT_TRUE(claim(*disk, "a", {"/fast"}));
  Places places;
  places.move("/a", {"/copy", "fsid 1", 1, "m", "h"});
  // Damages the directory table: if it was read, the error would be a different one.
  ASSERT_TRUE(disk->corrupt("/a/directories", 0, 0x55));
  expect_identity(claim(*disk, "a", {"/fast"}, places), "/a: ", "nothing in it was read");
}

TEST(DirectoryOwner, KnowsAnUnmountedVolumeAndAnUnownedDataDirectory) {
  auto disk = disk_with_directories();
  ASSERT_TRUE(claim(*disk, "a", {"/fast"}));
  ASSERT_TRUE(disk->remove("/fast/owner"));
  expect_identity(claim(*disk, "a", {"/fast"}), "/fast: ", "mount its file system");
  EXPECT_TRUE(claim(*disk, "a", {})) << "it is not needed";
  EXPECT_TRUE(claim(*disk, "a", {"/fast"})) << "nothing names it, so its role is forgotten";
  Savepoint savepoint;
  ASSERT_TRUE(disk->make_directory("/b/coordinator"));
  ASSERT_TRUE(write_savepoint(*disk, "/b", savepoint));
  expect_identity(claim(*disk, "b", {}), "/b/owner: ", "holds savepoint");
}

/// Writes an owner file as earlier versions of the program did.
void write_old_owner(FileSystem& files, const std::string& directory, bool is_data_dir) {
  ASSERT_TRUE(write_owner(files, directory, {"12ab", is_data_dir, "a", "/a", "", {}}));
}

TEST(DirectoryOwner, TakesOverWhatEarlierProgramsWroteInItsPlaceAndNoCopyOfIt) {
  auto disk = disk_with_directories();
  for (const char* directory : {"/fast", "/big"}) write_old_owner(*disk, directory, false);
  write_old_owner(*disk, "/a", true);
  Savepoint savepoint;
  savepoint.largest_incarnation = 1;
  savepoint.incarnations = {{1, 1, {}, {{0, 0, "/fast"}, {1, 0, "/big"}}}};
  ASSERT_TRUE(disk->make_directory("/a/coordinator"));
  ASSERT_TRUE(write_savepoint(*disk, "/a", savepoint));
  auto copy = disk->cut_losing_nothing();
  Places places;
  places.move("/a", {"/copy", "fsid 1", 1, "m", "h"});
  expect_identity(claim(*copy, "a", {"/fast"}, places), "/a: ", "data_dir was /a and is /copy");
  // Also converts the owner file of /big, which is no longer configured.
  ASSERT_TRUE(claim(*disk, "a", {"/fast"}));
  for (const std::string directory : {"/a", "/fast", "/big"}) {
    auto owner = read_owner(*disk, directory);
    ASSERT_TRUE(owner && *owner);
    EXPECT_EQ((*owner)->id, "12ab");
    ASSERT_TRUE((*owner)->location) << directory;
    EXPECT_EQ((*owner)->location->path, directory);
    EXPECT_EQ((*owner)->role.empty(), false) << directory;
  }
  expect_identity(claim(*disk, "a", {"/fast"}, places), "/a: ", "its path was /a and is /copy");
}

TEST(DirectoryOwner, RefusesADirectoryWithTheRoleOfAnother) {
  auto disk = disk_with_directories();
  ASSERT_TRUE(claim(*disk, "a", {"/fast", "/big"}));
  auto fast = read_owner(*disk, "/fast");
  auto big = read_owner(*disk, "/big");
  ASSERT_TRUE(fast && *fast && big && *big);
  EXPECT_NE((*fast)->role, (*big)->role);
  (*big)->role = (*fast)->role;
  ASSERT_TRUE(write_owner(*disk, "/big", **big));
  expect_identity(claim(*disk, "a", {"/fast", "/big"}), "/big: ", "says is /fast");
}

TEST(DirectoryOwner, GivesNoRoleAgainThatOnlyAnOwnerFileKnows) {
  auto disk = disk_with_directories();
  ASSERT_TRUE(claim(*disk, "a", {"/fast"}));
  // Simulates a crash after the owner file of /fast was written and before the table was.
  ASSERT_TRUE(disk->remove(directory_table_path("/a")));
  ASSERT_TRUE(claim(*disk, "a", {"/big", "/fast"})) << "/big is asked first";
  const auto fast = read_owner(*disk, "/fast");
  const auto big = read_owner(*disk, "/big");
  ASSERT_TRUE(fast && *fast && big && *big);
  EXPECT_NE((*fast)->role, (*big)->role);
  EXPECT_TRUE(claim(*disk, "a", {"/big", "/fast"}));
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
