// Adoption of copied and moved data directories (R47, R48).
#include "ops/launcher/adopt_data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "engine/log/savepoint.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "ops/launcher/data_lock.h"
#include "ops/launcher/owner_file.h"
#include "shared/file/posix_file_system.h"
#include "tests/cluster/cluster_folder.h"
#include "tests/engine/log/hooked_file_system.h"

namespace atolldb::test {
namespace {

namespace fs = std::filesystem;

/// A dead cluster in <folder>/a, whose data names data_dir and one more directory.
class AdoptData : public testing::Test {
 protected:
  AdoptData() {
    EXPECT_TRUE(lock_data(at("a")));
    Savepoint savepoint;
    savepoint.largest_incarnation = 7;
    savepoint.incarnations = {{7, 1, {}, {{0, 0, path("a/data")}, {1, 0, path("a/fast")}}}};
    EXPECT_TRUE(write_savepoint(files_, path("a/data"), savepoint));
    SnapshotMetadata metadata;
    metadata.id = 3;
    metadata.files = {{3, 1, path("a/fast"), 2}};
    EXPECT_TRUE(write_snapshot_metadata(files_, path("a/data"), metadata));
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  Config at(const std::string& place) const {
    Config config = folder_.config(place);
    config.cluster.data_dir = path(place + "/data");
    config.nodes[1].directories = {path(place + "/fast")};
    return config;
  }
  void copy(const std::string& from, const std::string& to) {
    fs::remove_all(path(to));
    fs::copy(path(from), path(to), fs::copy_options::recursive);
  }
  DirectoryOwner owner(const std::string& directory) {
    auto read = read_owner(files_, path(directory));
    EXPECT_TRUE(read && *read) << directory;
    return read && *read ? **read : DirectoryOwner{};
  }
  Savepoint savepoint(const std::string& place) {
    auto read = read_savepoint(files_, path(place + "/data"));
    EXPECT_TRUE(read && *read);
    return read && *read ? (*read)->savepoint : Savepoint{};
  }
  /// Checks that the data name all their directories below `place`.
  void expect_named_in(const std::string& place) {
    const Savepoint found = savepoint(place);
    ASSERT_EQ(found.incarnations.size(), 1u);
    EXPECT_EQ(found.incarnations[0].loggers[0].directory, path(place + "/data"));
    EXPECT_EQ(found.incarnations[0].loggers[1].directory, path(place + "/fast"));
    const auto metadata = read_snapshot_metadata(files_, path(place + "/data"), 3);
    ASSERT_TRUE(metadata) << metadata.error().message;
    EXPECT_EQ(metadata->files[0].directory, path(place + "/fast"));
  }
  void expect_starts(const std::string& place) {
    const auto lock = lock_data(at(place));
    EXPECT_TRUE(lock) << lock.error().message;
  }
  void expect_refused(const std::string& place) {
    const auto lock = lock_data(at(place));
    ASSERT_FALSE(lock);
    EXPECT_EQ(lock.error().code, ExitCode::identity) << lock.error().message;
  }

  TestFolder folder_;
  PosixFileSystem files_;
};

TEST_F(AdoptData, WhateverChangeACrashInterruptsTheNextAdoptionOfACopyGoesOn) {
  const DirectoryOwner original = owner("a/data");
  bool is_done = false;
  for (uint64_t works = 0; !is_done; ++works) {
    SCOPED_TRACE(std::to_string(works) + " changes before the crash");
    copy("a", "b");
    HookedFileSystem killed(files_, {}, works);
    is_done = adopt_data(at("b"), AdoptionKind::copy, killed).has_value();
    const bool is_adopted = owner("b/data").id != original.id;
    if (!is_adopted) {
      expect_refused("b");
      const auto again = adopt_data(at("b"), AdoptionKind::copy, files_);
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_TRUE(again->is_changed);
      EXPECT_EQ(again->previous_id, original.id);
    }
    expect_starts("b");
    expect_named_in("b");
    EXPECT_NE(owner("b/data").id, original.id);
    EXPECT_EQ(owner("b/data").id, owner("b/fast").id);
    EXPECT_GT(savepoint("b").largest_incarnation, savepoint("a").largest_incarnation);
    EXPECT_EQ(owner("a/data"), original) << "the original is as it was";
    expect_named_in("a");
  }
  expect_starts("a");
}

TEST_F(AdoptData, WhateverChangeACrashInterruptsTheNextAdoptionOfWhatWasMovedGoesOn) {
  const std::string id = owner("a/data").id;
  bool is_done = false;
  for (uint64_t works = 0; !is_done; ++works) {
    SCOPED_TRACE(std::to_string(works) + " changes before the crash");
    const std::string from = works % 2 == 0 ? "a" : "b";
    const std::string to = works % 2 == 0 ? "b" : "a";
    fs::rename(path(from), path(to));
    expect_refused(to);
    HookedFileSystem killed(files_, {}, works);
    is_done = adopt_data(at(to), AdoptionKind::moved, killed).has_value();
    const auto again = adopt_data(at(to), AdoptionKind::moved, files_);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_TRUE(!is_done || !again->is_changed);
    expect_starts(to);
    expect_named_in(to);
    EXPECT_EQ(owner(to + "/data").id, id);
    EXPECT_EQ(owner(to + "/fast").id, id);
    EXPECT_EQ(savepoint(to).largest_incarnation, 7u);
  }
}

TEST_F(AdoptData, OneDirectoryOfLogsAloneMayHaveMoved) {
  fs::rename(path("a/fast"), path("faster"));
  Config config = at("a");
  config.nodes[1].directories = {path("faster")};
  auto refused = lock_data(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::identity) << refused.error().message;
  const auto adopted = adopt_data(config, AdoptionKind::moved, files_);
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_EQ(adopted->directories[1], (DirectoryRole{"log-1", path("faster")}));
  EXPECT_TRUE(lock_data(config));
  EXPECT_EQ(savepoint("a").incarnations[0].loggers[1].directory, path("faster"));
}

TEST_F(AdoptData, ALostVolumeIsMadeNewOnlyWhenItIsAskedFor) {
  fs::remove_all(path("a/fast"));
  expect_refused("a");
  expect_refused("a");
  EXPECT_FALSE(fs::exists(path("a/fast/owner")));
  const auto adopted = adopt_data(at("a"), AdoptionKind::moved, files_);
  ASSERT_TRUE(adopted) << adopted.error().message;
  expect_starts("a");
  expect_named_in("a");
}

TEST_F(AdoptData, RefusesWhatIsNotWhatTheCallerSays) {
  const auto code_of = [&](const Config& config, AdoptionKind adoption) {
    const auto adopted = adopt_data(config, adoption, files_);
    return adopted ? ExitCode::success : adopted.error().code;
  };
  EXPECT_EQ(code_of(at("a"), AdoptionKind::copy), ExitCode::identity) << "it is in its place";
  EXPECT_EQ(code_of(at("b"), AdoptionKind::copy), ExitCode::failed) << "it is nowhere";
  EXPECT_FALSE(fs::exists(path("b"))) << "nothing is made";
  copy("a", "b");
  EXPECT_EQ(code_of(at("b"), AdoptionKind::moved), ExitCode::identity) << "its original is there";
  Config mixed = at("b");
  mixed.nodes[1].directories = {path("a/fast")};
  EXPECT_EQ(code_of(mixed, AdoptionKind::copy), ExitCode::identity) << "the original's directory";
  copy("b/fast", "fast2");
  mixed.nodes[1].directories = {path("b/fast"), path("fast2")};
  EXPECT_EQ(code_of(mixed, AdoptionKind::copy), ExitCode::failed) << "two have one role";
  mixed.nodes[1].directories = {};
  EXPECT_EQ(code_of(mixed, AdoptionKind::copy), ExitCode::failed) << "the data need the other one";
  Config other = at("c");
  ASSERT_TRUE(lock_data(other));
  mixed.nodes[1].directories = {path("b/fast"), path("c/fast")};
  EXPECT_EQ(code_of(mixed, AdoptionKind::copy), ExitCode::failed) << "another cluster's";
  expect_refused("b");
  const auto lock = lock_data(other);
  ASSERT_TRUE(lock);
  EXPECT_EQ(code_of(other, AdoptionKind::moved), ExitCode::already_running);
}

TEST_F(AdoptData, ACopyWithLinksToItsOriginalIsRefused) {
  // An administrator moved a folder of logs to another disk, and left a link.
  fs::create_directories(path("disk"));
  fs::create_directories(path("a/data/node0"));
  fs::rename(path("a/data/node0"), path("disk/node0"));
  fs::create_directory_symlink(path("disk/node0"), path("a/data/node0"));
  expect_starts("a");
  fs::copy(path("a"), path("b"), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  expect_refused("b");
  auto refused = adopt_data(at("b"), AdoptionKind::copy, files_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::identity) << refused.error().message;
  EXPECT_TRUE(refused.error().message.starts_with(path("b/data/node0") + ": is a link"))
      << refused.error().message;
  fs::remove(path("b/data/node0"));
  fs::copy(path("disk/node0"), path("b/data/node0"), fs::copy_options::recursive);
  // Links the savepoint as `cp -al` does. It is written in place, so both directories would share
  // it.
  const std::string shared = path("b/data/coordinator/savepoint");
  fs::remove(shared);
  fs::create_hard_link(path("a/data/coordinator/savepoint"), shared);
  refused = adopt_data(at("b"), AdoptionKind::copy, files_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::identity) << refused.error().message;
  EXPECT_TRUE(refused.error().message.starts_with(shared + ": is a link"))
      << refused.error().message;
  EXPECT_EQ(savepoint("a").largest_incarnation, 7u);
  expect_refused("b");
  fs::remove(shared);
  fs::copy_file(path("a/data/coordinator/savepoint"), shared);
  const auto adopted = adopt_data(at("b"), AdoptionKind::copy, files_);
  ASSERT_TRUE(adopted) << adopted.error().message;
  expect_starts("b");
  expect_starts("a");
}

TEST_F(AdoptData, AMissingPermissionIsCalledSo) {
  if (geteuid() == 0) GTEST_SKIP() << "root has every permission";
  fs::permissions(path("a"), fs::perms::none);
  const auto refused = adopt_data(at("a"), AdoptionKind::moved, files_);
  fs::permissions(path("a"), fs::perms::owner_all);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("Permission denied"), std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace atolldb::test
