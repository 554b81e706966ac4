// Texts of file errors, and the extraction of file name and errno from them.
#include "shared/file/file_failure.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "shared/file/file_errors.h"
#include "shared/file/path_errors.h"

namespace atolldb {
namespace {

constexpr const char* kPath = "/no such/dir: x/log 3.log";

void expect_found(const Error& error, const std::string& file, int error_number) {
  // The message as it arrives after passing through other processes.
  const std::string message = "cluster \"c\": node1 (pid 7): " + error.message +
                              ": the cluster has stopped: see /var/log/node1.log";
  const auto failure = file_failure_in(message);
  ASSERT_TRUE(failure) << message;
  EXPECT_EQ(failure->file, file) << message;
  EXPECT_EQ(failure->error_number, error_number) << message;
}

TEST(FileFailure, IsFoundInTheTextOfEachOperation) {
  const std::string path = "/no such/dir/log 3.log";
  for (const int number : {EIO, ENOSPC, EROFS, EACCES, EDQUOT, ENOENT, EFBIG}) {
    for (const std::string& what :
         {write_text(path, 4096, 8192), read_text(path, 0, 4096), "sync of " + path,
          "sync of " + path + " (0 to 4096)", "opening " + path, "sync of directory " + path,
          "creation of " + path + " with 4096 bytes",
          "creation of " + path + " with 4096 bytes (and it could not be removed again)",
          "growth of " + path + " from 0 to 8192 bytes", "renaming of /a to " + path}) {
      expect_found(io_error(what, number).error(), path, number);
    }
    expect_found(path_error(path, "cannot be made", number, "change it"), path, number);
  }
}

TEST(FileFailure, OfAPathWithAColonIsFoundFromItsLastPart) {
  const auto failure =
      file_failure_in(io_error("sync of " + std::string(kPath), EIO).error().message);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->error_number, EIO);
}

TEST(FileFailure, IsNotFoundInOtherTexts) {
  for (const char* text :
       {"", "cluster \"c\": node0 (pid 3) was killed by SIGKILL: see /x/node0.log",
        "cluster \"c\": node0 hung: no heartbeat for 500 ms: see /x/node0.log",
        "socketpair: Too many open files: raise `ulimit -n`"}) {
    EXPECT_FALSE(file_failure_in(text)) << text;
  }
}

TEST(PathError, OfAFullFileSystemNamesItAndHasItsCode) {
  const Error error = path_error("/tmp/none/x", "cannot be made", ENOSPC, "change the key");
  EXPECT_EQ(error.code, ExitCode::disk_full);
  EXPECT_NE(error.message.find("the file system of /tmp/none/x (mounted on /"), std::string::npos)
      << error.message;
  EXPECT_NE(error.message.find("MiB free: free space there"), std::string::npos) << error.message;
  EXPECT_EQ(io_error("creation of /tmp/none/x with 1 bytes", EDQUOT).error().code,
            ExitCode::disk_full);
}

TEST(PathError, OfARefusalNamesTheFolderItsOwnerAndTheUser) {
  std::string folder = "/tmp/atoll-refusal-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
  const std::string path = folder + "/below/file";
  constexpr uid_t kNobody = 65'534;
  const bool is_root = geteuid() == 0;
  if (!is_root) {
    std::filesystem::remove_all(folder);
    GTEST_SKIP() << "only root can become another user";
  }
  ASSERT_EQ(seteuid(kNobody), 0);
  const Error error = path_error(path, "cannot be opened", EACCES, "change the key");
  const std::string of_file = io_error("opening " + path, EACCES).error().message;
  ASSERT_EQ(seteuid(0), 0);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(error.code, ExitCode::failed);
  const std::string who =
      folder + " belongs to " + user_text(0) + " with mode 0700, and this is " + user_text(kNobody);
  EXPECT_NE(error.message.find(who), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("Permission denied"), std::string::npos) << error.message;
  EXPECT_NE(of_file.find(who), std::string::npos) << of_file;
}

}  // namespace
}  // namespace atolldb
