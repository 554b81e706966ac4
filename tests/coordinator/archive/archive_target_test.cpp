// Targets of an archive on a real file system: the directory, and commands that fail or hang.
#include "coordinator/archive/archive_target.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "shared/file/posix_file_system.h"

namespace atolldb {
namespace {

namespace fs = std::filesystem;

class ArchiveTargetTest : public testing::Test {
 protected:
  ArchiveTargetTest() {
    std::printf("seed: none, nothing here is random\n");
    fs::create_directory(archive_);
    std::ofstream(source_) << std::string(2 * kIoBlockBytes, 'x');
  }
  ~ArchiveTargetTest() override { fs::remove_all(folder_); }

  Result<FileSum> put(const std::string& command, std::chrono::milliseconds timeout) {
    return make_command_target(files_, command, timeout, {})->put(source_, name_);
  }

  static std::string make_folder() {
    std::string pattern = "/tmp/atoll-archive-XXXXXX";
    return mkdtemp(pattern.data());
  }

  const std::string folder_ = make_folder();
  PosixFileSystem files_;
  const std::string archive_ = folder_ + "/archive";
  const std::string source_ = folder_ + "/it's a source";
  const std::string name_ = "node0/log_1_0_000000.atlog";
};

TEST_F(ArchiveTargetTest, ADirectoryGetsTheFileOnce) {
  const auto target = make_directory_target(files_, archive_, {});
  const auto stored = target->put(source_, name_);
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(stored->bytes, 2 * kIoBlockBytes);
  EXPECT_EQ(fs::file_size(archive_ + "/" + name_), 2 * kIoBlockBytes);
  EXPECT_FALSE(fs::exists(archive_ + "/" + name_ + ".part"));
  EXPECT_TRUE(target->put(source_, name_)) << "the same content is there already";
  std::ofstream(source_) << std::string(2 * kIoBlockBytes, 'y');
  const auto refused = target->put(source_, name_);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with(archive_ + "/" + name_ + ": exists with"))
      << refused.error().message;
}

TEST_F(ArchiveTargetTest, AMissingDirectoryIsNotMade) {
  fs::remove_all(archive_);
  const auto refused = make_directory_target(files_, archive_, {})->put(source_, name_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            archive_ + ": the directory of the archive is missing: make or mount it");
  EXPECT_FALSE(fs::exists(archive_));
}

TEST_F(ArchiveTargetTest, APartThatACrashHasLeftIsReplaced) {
  fs::create_directory(archive_ + "/node0");
  std::ofstream(archive_ + "/" + name_ + ".part") << "torn";
  EXPECT_TRUE(make_directory_target(files_, archive_, {})->put(source_, name_));
  EXPECT_EQ(fs::file_size(archive_ + "/" + name_), 2 * kIoBlockBytes);
}

TEST_F(ArchiveTargetTest, ACommandGetsPathAndNameQuotedForTheShell) {
  const auto stored =
      put("mkdir " + archive_ + "/node0 && cp %p " + archive_ + "/%f", std::chrono::minutes(1));
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(fs::file_size(archive_ + "/" + name_), 2 * kIoBlockBytes);
  EXPECT_EQ(expand_command("a %p b%%c %f", "/x/y", "n/l"), "a /x/y b%c n/l");
  EXPECT_EQ(expand_command("%p %f", "/it's", "n"), "'/it'\\''s' n");
}

TEST_F(ArchiveTargetTest, ACommandThatFailsOrHangsIsAnErrorThatNamesTheFile) {
  const auto failed = put("exit 3", std::chrono::minutes(1));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, source_ + ": archive.command for " + name_ +
                                        ": the command ended with exit code 3: run it by hand");
  const auto late = put("sleep 600", std::chrono::milliseconds(200));
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("the command was killed after 200ms"), std::string::npos)
      << late.error().message;
}

}  // namespace
}  // namespace atolldb
